"""What follows in a family when one of it ends."""

from collections.abc import Callable

import pytest

from domain.spawn.cascade import CascadeState, KeyTaken, decide, streams_of
from domain.spawn.continuation import RunIsActive
from domain.values.record import session_key_of, session_stream
from domain.values.refusals import NotYet, ReadAgain, SessionIsClosed
from tests.support.builders import run_commands as ask
from tests.support.builders.family_log import FamilyLog, announced, child_key
from tests.support.builders.storytelling import observed, run_id

# Runs and the sessions above them: who counts, until when, and what is written in which append.


def requested(log: FamilyLog, name: str, by: str) -> None:
    """Asked for, scripts not run."""
    log.spawn(name, by)


def resolved(log: FamilyLog, name: str, by: str) -> None:
    """Scripts run, key not minted."""
    log.spawn(name, by)
    log.tell(name, ask.resolve(log.run(name).epoch))


def prepared(log: FamilyLog, name: str, by: str) -> None:
    """Key minted, session not created."""
    resolved(log, name, by)
    epoch = log.run(name).epoch
    log.tell(name, ask.prepare(epoch, child_session_key=child_key(log.run(name).run_id)))


Bring = Callable[[FamilyLog, str, str], None]
PREPARING = [requested, resolved, prepared]


def test_a_child_without_descendants_is_released_in_the_append_of_its_end() -> None:
    log = FamilyLog()
    log.begin("scout")
    assert log.end("scout") == ["run scout RunEnded", "session main ChildReleased"]
    assert log.announce("scout") == ["run scout RunAnnounced"]
    assert log.counted("main") == []


@pytest.mark.parametrize("bring", PREPARING)
def test_a_refusal_gives_the_place_back_in_its_own_append(bring: Bring) -> None:
    log = FamilyLog(max_children=1)
    bring(log, "scout", "main")
    assert log.refuse("scout") == ["run scout SpawnRefused", "session main ChildReleased"]
    assert log.spawn("helper") == ["run helper SpawnRequested", "session main ChildAdmitted"]


def test_the_announcement_of_the_last_descendant_settles_and_releases_its_orchestrator() -> None:
    log = FamilyLog()
    log.begin("scout")
    log.begin("one", "scout")
    log.begin("two", "scout")
    log.end("scout")
    assert log.end("two") == ["run two RunEnded", "session scout ChildReleased"]
    assert log.announce("two") == ["run two RunAnnounced", "session scout ChildSettled"]
    log.end("one")
    with pytest.raises(NotYet):
        log.announce("scout")
    assert log.announce("one") == [
        "run one RunAnnounced",
        "session scout ChildSettled",
        "run scout DescendantsSettled",
        "session main ChildReleased",
    ]
    assert log.counted("main") == []
    assert log.announce("scout") == ["run scout RunAnnounced"]


# What is over in a family stays over: archives, closed sessions, keys, and nothing done twice.


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (1, "the run of session .* is over, .* or go on with it by a message"),
        (2, "the run of session .* is over, .* or go on with it by a message"),
        (3, "is closed and spawns no more"),
    ],
)
def test_a_session_whose_run_is_over_spawns_no_more(steps: int, said: str) -> None:
    log = FamilyLog()
    log.begin("scout")
    for step in (log.end, log.announce, lambda name: log.tell(name, ask.archive()))[:steps]:
        step("scout")
    before = list(log.recorded)
    with pytest.raises(SessionIsClosed, match=said) as refused:
        log.spawn("below", "scout")
    assert "ask from the session that spawned it" in str(refused.value)
    assert (log.session("scout").stage == "closed") is ("is closed" in str(refused.value))
    assert log.recorded == before


def test_the_key_of_a_child_that_somebody_used_before_it_was_there_is_not_used() -> None:
    log = FamilyLog()
    log.spawn("scout")
    epoch = log.run("scout").epoch
    log.tell("scout", ask.resolve(epoch))
    minted = log.key("scout")
    log.tell("scout", ask.prepare(epoch, child_session_key=minted))
    log.record([(session_stream(minted), observed(session_key=minted, depth=1))])
    with pytest.raises(KeyTaken, match=minted):
        log.tell("scout", ask.create(epoch))
    fresh = child_key(run_id(77))
    log.tell("scout", ask.prepare(epoch, child_session_key=fresh), ask.create(epoch))
    assert log.run("scout").child_session_key == fresh


def test_a_stop_that_was_begun_before_the_session_was_there_still_counts_those_below() -> None:
    log = FamilyLog()
    log.spawn("scout")
    named_too_early = streams_of(log.run("scout"))
    log.create("scout")
    log.begin("below", "scout")
    keys = {session_key_of(stream) for stream in named_too_early}
    known = {key: one for key, one in log.fold.sessions.items() if key in keys}
    with pytest.raises(ReadAgain):
        log.record(decide(CascadeState(log.fold.runs, known), log.run("scout").run_id, ask.stop()))
    assert log.counted("main") == ["scout"]


# Runs by which sessions go on, and the sessions above and below them: who counts and who waits.


def test_a_requester_that_is_about_to_be_announced_is_not_made_to_wait_by_a_message() -> None:
    log = FamilyLog()
    log.begin("scout")
    log.begin("below", "scout")
    log.finish("below")
    log.end("scout")
    before = list(log.recorded)
    with pytest.raises(RunIsActive, match="is being announced") as said:
        log.message("again", "below")
    assert str(log.run("scout").run_id) in str(said.value)
    assert log.recorded == before
    assert log.announce("scout") == ["run scout RunAnnounced"]
    assert log.message("later", "below")[-1] == "run later RunQueued"


def test_a_spawn_of_a_session_that_went_on_is_asked_for_by_its_newest_run() -> None:
    log = announced("scout")
    log.go_on("again", "scout")
    log.tell("again", ask.stop())
    with pytest.raises(SessionIsClosed, match="is being stopped"):
        log.spawn("below", "scout")
    log.end("again")
    with pytest.raises(SessionIsClosed, match=r"the run of session .* is over"):
        log.spawn("below", "scout")

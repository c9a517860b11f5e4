"""What follows in a family when one of it ends."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from domain.run.events import ContinuationPlanned
from domain.session.events import ChildReleased, ChildSettled
from domain.spawn.cascade import CascadeState, KeyTaken, UnknownRun, decide, streams_of
from domain.spawn.continuation import Message, RunIsActive, continue_session
from domain.values.record import session_key_of, session_stream
from domain.values.refusals import NotYet, ReadAgain, Rejected, SessionIsClosed, WrongStage
from tests.support.builders import continued_runs as continued
from tests.support.builders import run_commands as ask
from tests.support.builders.family_log import FamilyLog, announced, child_key, keep
from tests.support.builders.storytelling import observed, ref, run_id

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


def queued(log: FamilyLog, name: str, by: str) -> None:
    """In the lane, held by nobody."""
    log.spawn(name, by)
    log.create(name)


def claimed(log: FamilyLog, name: str, by: str) -> None:
    """Out of the lane, not started."""
    queued(log, name, by)
    log.tell(name, ask.claim())


def started(log: FamilyLog, name: str, by: str) -> None:
    """Executing."""
    log.begin(name, by)


Bring = Callable[[FamilyLog, str, str], None]
PREPARING = [requested, resolved, prepared]
UNDER_WAY = [*PREPARING, queued, claimed, started]


def test_a_first_request_is_recorded_with_its_requester_and_the_place_it_takes() -> None:
    assert FamilyLog().spawn("scout") == [
        "session main SessionObserved",
        "run scout SpawnRequested",
        "session main ChildAdmitted",
    ]


def test_a_second_request_finds_its_requester_on_record() -> None:
    log = FamilyLog()
    log.spawn("scout")
    assert log.spawn("helper") == ["run helper SpawnRequested", "session main ChildAdmitted"]
    assert log.counted("main") == ["scout", "helper"]


def test_a_childs_session_is_recorded_before_its_run_is_queued() -> None:
    log = FamilyLog()
    log.spawn("scout")
    assert log.create("scout") == [
        "run scout ScriptsResolved",
        "run scout PreparationStarted",
        "run scout SessionCreated",
        "session scout SessionObserved",
        "run scout RunQueued",
    ]
    session = log.session("scout")
    assert (session.depth, session.run_id) == (1, log.run("scout").run_id)
    assert (session.spawned_by, session.root_session_key) == (log.key("main"), log.key("main"))


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


@pytest.mark.parametrize("bring", [claimed, started])
def test_a_stop_of_a_held_run_leaves_its_place_taken_until_its_holder_ends_it(bring: Bring) -> None:
    log = FamilyLog()
    bring(log, "scout", "main")
    assert log.tell("scout", ask.stop()) == ["run scout StopRequested"]
    assert log.counted("main") == ["scout"]
    assert log.end("scout") == ["run scout RunEnded", "session main ChildReleased"]


@pytest.mark.parametrize("bring", UNDER_WAY)
def test_an_orchestrator_that_ends_first_counts_and_waits_for_those_below(bring: Bring) -> None:
    log = FamilyLog()
    log.begin("scout")
    bring(log, "below", "scout")
    assert log.end("scout") == ["run scout RunEnded"]
    assert log.run("scout").pending_descendants == 1
    assert log.counted("main") == ["scout"]
    with pytest.raises(NotYet, match="1 descendants"):
        log.announce("scout")


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


@pytest.mark.parametrize("by_stop", [False, True])
@pytest.mark.parametrize("bring", PREPARING)
def test_the_refusal_of_the_last_descendant_settles_and_releases_its_orchestrator(
    bring: Bring, by_stop: bool
) -> None:
    log = FamilyLog()
    log.begin("scout")
    bring(log, "below", "scout")
    log.end("scout")
    assert (log.tell("below", ask.stop()) if by_stop else log.refuse("below")) == [
        "run below SpawnRefused",
        "session scout ChildReleased",
        "session scout ChildSettled",
        "run scout DescendantsSettled",
        "session main ChildReleased",
    ]


def test_a_descendant_that_is_done_before_its_orchestrator_only_settles() -> None:
    log = FamilyLog()
    log.begin("scout")
    log.begin("below", "scout")
    log.end("below")
    assert log.announce("below") == ["run below RunAnnounced", "session scout ChildSettled"]
    assert log.end("scout") == ["run scout RunEnded", "session main ChildReleased"]


def test_three_levels_are_settled_one_after_the_other_from_below() -> None:
    log = FamilyLog()
    for name, by in (("scout", "main"), ("below", "scout"), ("deepest", "below")):
        log.begin(name, by)
    assert log.end("scout") == ["run scout RunEnded"]
    assert log.end("below") == ["run below RunEnded"]
    assert log.end("deepest") == ["run deepest RunEnded", "session below ChildReleased"]
    assert log.announce("deepest") == [
        "run deepest RunAnnounced",
        "session below ChildSettled",
        "run below DescendantsSettled",
        "session scout ChildReleased",
    ]
    assert log.counted("main") == ["scout"]
    assert log.announce("below")[1:] == [
        "session scout ChildSettled",
        "run scout DescendantsSettled",
        "session main ChildReleased",
    ]


# What is over in a family stays over: archives, closed sessions, keys, and nothing done twice.


def test_an_archive_closes_the_childs_session() -> None:
    log = FamilyLog()
    log.begin("scout")
    log.end("scout")
    log.announce("scout")
    assert log.tell("scout", ask.archive()) == [
        "run scout RunArchived",
        "session scout SessionClosed",
    ]
    assert log.session("scout").stage == "closed"


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


def test_a_session_whose_run_was_told_to_stop_spawns_no_more() -> None:
    log = FamilyLog()
    log.begin("scout")
    log.spawn("below", "scout")
    log.tell("scout", ask.stop())
    with pytest.raises(SessionIsClosed, match="is being stopped"):
        log.spawn("another", "scout")


def test_nothing_is_released_or_settled_twice() -> None:
    log = FamilyLog()
    log.begin("scout")
    log.begin("below", "scout")
    log.end("scout")
    for _ in range(2):
        for name in ("below", "scout"):
            for command in (
                ask.stop(),
                ask.end(log.run(name).epoch),
                ask.refuse(None),
                ask.announce(),
                ask.acknowledge(),
                ask.archive(),
            ):
                with contextlib.suppress(Rejected):
                    log.tell(name, command)
    done = [(one.stream, one.event) for one in log.recorded]
    over = [one for one in done if isinstance(one[1], ChildReleased | ChildSettled)]
    assert len(over) == 3
    assert len({(stream, type(event), event.run_id) for stream, event in over}) == 3  # type: ignore[union-attr]


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


def test_a_run_that_is_not_on_record_is_told_so() -> None:
    log = FamilyLog()
    log.spawn("scout")
    with pytest.raises(UnknownRun, match=str(run_id(99))):
        decide(log.around("scout"), run_id(99), ask.stop())


def test_commands_in_turn_are_what_they_are_one_after_the_other() -> None:
    together, apart = FamilyLog(), FamilyLog()
    for log in (together, apart):
        log.spawn("scout")
    told = together.create("scout")
    run = apart.run("scout")
    for command in (
        ask.resolve(run.epoch),
        ask.prepare(run.epoch, child_session_key=child_key(run.run_id)),
        ask.create(run.epoch, max_depth=3),
    ):
        apart.tell("scout", command)
    assert together.recorded == apart.recorded
    assert len(told) == 5


def test_of_commands_in_turn_none_is_recorded_when_one_is_refused() -> None:
    log = FamilyLog()
    log.spawn("scout")
    before = list(log.recorded)
    with pytest.raises(Rejected):
        log.tell("scout", ask.resolve(1), ask.create(1))
    assert log.recorded == before


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


def unsettled(log: FamilyLog, name: str) -> list[str]:
    """Whom an announcement of this session's run waits for."""
    return [log.names[run] for run in log.session(name).unsettled]


def test_an_orchestrator_that_is_gone_on_with_has_children_of_its_own_again() -> None:
    log = announced("scout", "below")
    with pytest.raises(SessionIsClosed):
        log.spawn("late", "scout")
    log.go_on("again", "scout")
    log.begin("fresh", "scout")
    assert log.run("fresh").requester.run_id == log.run("again").run_id
    assert log.run("fresh").depth == 2
    assert log.end("again") == ["run again RunEnded"]
    assert log.run("again").pending_descendants == 1
    assert log.counted("main") == ["again"]
    with pytest.raises(NotYet):
        log.announce("again")
    log.end("fresh")
    assert log.announce("fresh") == [
        "run fresh RunAnnounced",
        "session scout ChildSettled",
        "run again DescendantsSettled",
        "session main ChildReleased",
    ]
    assert log.announce("again") == ["run again RunAnnounced"]


def test_while_its_requester_runs_it_waits_for_a_child_that_was_gone_on_with() -> None:
    log = FamilyLog()
    log.begin("scout")
    log.begin("below", "scout")
    log.finish("below")
    log.go_on("again", "below")
    assert log.run("again").requester.run_id == log.run("scout").run_id
    assert (log.counted("scout"), unsettled(log, "scout")) == (["again"], ["again"])
    assert log.end("scout") == ["run scout RunEnded"]
    assert log.end("again") == ["run again RunEnded", "session scout ChildReleased"]
    assert log.announce("again") == [
        "run again RunAnnounced",
        "session scout ChildSettled",
        "run scout DescendantsSettled",
        "session main ChildReleased",
    ]


def test_a_requester_that_waits_for_others_waits_for_a_message_too() -> None:
    log = FamilyLog()
    log.begin("scout")
    for name in ("one", "two"):
        log.begin(name, "scout")
    log.finish("one")
    log.end("scout")
    log.go_on("again", "one")
    assert unsettled(log, "scout") == ["two", "again"]
    log.finish("two")
    assert (log.run("scout").pending_descendants, log.counted("main")) == (1, ["scout"])
    log.end("again")
    assert log.announce("again")[1:] == [
        "session scout ChildSettled",
        "run scout DescendantsSettled",
        "session main ChildReleased",
    ]


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


def test_a_requester_whose_own_run_is_announced_is_told_of_a_message_and_nobody_above() -> None:
    log = announced("scout", "below")
    log.go_on("again", "below")
    assert log.run("again").requester.run_id == log.run("scout").run_id
    assert (log.counted("scout"), log.counted("main")) == (["again"], [])
    assert log.end("again") == ["run again RunEnded", "session scout ChildReleased"]
    assert log.announce("again") == ["run again RunAnnounced", "session scout ChildSettled"]
    assert log.run("scout").stage == "announced"


def test_a_session_takes_no_message_while_one_below_it_goes_on() -> None:
    log = announced("scout", "below")
    log.message("again", "below")
    with pytest.raises(RunIsActive):
        log.message("second", "scout")
    log.tell("again", ask.stop())
    with pytest.raises(RunIsActive):
        log.message("second", "scout")
    log.announce("again")
    assert log.message("second", "scout")[-1] == "run second RunQueued"
    log.message("third", "below")
    assert log.run("third").requester.run_id == log.run("second").run_id
    assert unsettled(log, "scout") == ["third"]


@pytest.mark.parametrize("by", ["archive", "close"])
def test_a_child_is_gone_on_with_after_its_requesters_session_was_put_away(by: str) -> None:
    log = announced("scout", "below")
    log.tell("scout", ask.archive() if by == "archive" else continued.close())
    assert log.session("scout").stage == "closed"
    assert log.message("again", "below") == [
        "run again MessageReceived",
        "session scout ChildAdmitted",
        "run below RunContinued",
        "session below SessionContinued",
        "run again ContinuationPlanned",
        "run again RunQueued",
    ]
    log.tell("again", ask.claim())
    log.tell("again", ask.start(log.run("again").epoch))
    assert log.counted("scout") == ["again"]
    assert log.end("again") == ["run again RunEnded", "session scout ChildReleased"]
    assert log.announce("again") == ["run again RunAnnounced", "session scout ChildSettled"]


def test_a_session_that_is_closed_under_way_spawns_no_more_and_ends_as_others_do() -> None:
    log = FamilyLog()
    log.begin("scout")
    log.begin("below", "scout")
    assert log.tell("scout", continued.close()) == [
        "run scout ArchiveScheduled",
        "session scout SessionClosed",
    ]
    with pytest.raises(SessionIsClosed):
        log.spawn("another", "scout")
    log.end("scout")
    log.end("below")
    assert log.announce("below")[-1] == "session main ChildReleased"
    log.announce("scout")
    scout = log.run("scout")
    assert scout.archive_at == scout.announced_at
    assert log.tell("scout", ask.archive()) == ["run scout RunArchived"]


def test_a_spawn_of_a_session_that_went_on_is_asked_for_by_its_newest_run() -> None:
    log = announced("scout")
    log.go_on("again", "scout")
    log.tell("again", ask.stop())
    with pytest.raises(SessionIsClosed, match="is being stopped"):
        log.spawn("below", "scout")
    log.end("again")
    with pytest.raises(SessionIsClosed, match=r"the run of session .* is over"):
        log.spawn("below", "scout")


# A run whose session went on is put away after the run that goes on with it, and never before.

PLANNED = Path(__file__).parents[2] / "histories" / "ContinuationPlanned.1.json"


def record_announced(log: FamilyLog, name: str) -> None:
    """From its lane to its announcement."""
    log.tell(name, ask.claim())
    log.tell(name, ask.start(log.run(name).epoch))
    log.end(name)
    log.announce(name)


def gone_on() -> FamilyLog:
    """Run `first` is announced, and `second` goes on with its session."""
    log = FamilyLog()
    log.spawn("first")
    log.create("first")
    record_announced(log, "first")
    log.names[run_id(2)] = "second"
    message = Message(
        run_id=run_id(2), text=ref("message"), by="admin", config_revision=1, max_children=5
    )
    planned = ContinuationPlanned.from_json(PLANNED.read_bytes())
    last = log.run("first")
    fold = log.fold
    judged = continue_session(fold.sessions, fold.runs, message, last, planned, keep)
    assert judged.refusal is None
    log.record(judged.changes)
    return log


def test_an_archive_that_was_under_way_when_a_message_came_is_turned_down() -> None:
    log = gone_on()
    with pytest.raises(WrongStage):
        log.tell("first", ask.archive())
    assert log.session("first").stage == "open"


def test_it_is_put_away_once_the_run_that_goes_on_is() -> None:
    log = gone_on()
    record_announced(log, "second")
    told = log.tell("second", ask.archive())
    assert told[-1] == "run first ArchiveScheduled"
    assert log.tell("first", ask.archive()) == ["run first RunArchived"]

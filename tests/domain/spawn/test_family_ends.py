"""What is over in a family stays over: archives, closed sessions, keys, and nothing done twice."""

import contextlib

import pytest

from domain.session.events import ChildReleased, ChildSettled
from domain.spawn.cascade import CascadeState, KeyTaken, UnknownRun, decide, streams_of
from domain.values.record import session_key_of, session_stream
from domain.values.refusals import ReadAgain, Rejected, SessionIsClosed
from tests.support.builders import run_commands as ask
from tests.support.builders.family_log import FamilyLog, child_key
from tests.support.builders.storytelling import observed, run_id


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


def test_an_orchestrator_that_waits_for_those_below_spawns_no_more() -> None:
    log = FamilyLog()
    log.begin("scout")
    log.begin("below", "scout")
    log.end("scout")
    with pytest.raises(SessionIsClosed):
        log.spawn("another", "scout")
    log.spawn("deepest", "below")


def test_a_session_whose_run_was_told_to_stop_spawns_no_more() -> None:
    log = FamilyLog()
    log.begin("scout")
    log.spawn("below", "scout")
    log.tell("scout", ask.stop())
    with pytest.raises(SessionIsClosed, match="is being stopped"):
        log.spawn("another", "scout")


def test_a_place_that_was_given_back_is_given_again_and_no_more_than_that() -> None:
    log = FamilyLog(max_children=2)
    log.begin("one")
    log.begin("two")
    assert log.spawn("three") == ["run three SpawnRequested", "run three SpawnRefused"]
    log.end("one")
    assert log.spawn("four")[-1] == "session main ChildAdmitted"
    assert log.spawn("five")[-1] == "run five SpawnRefused"
    assert log.counted("main") == ["two", "four"]


def test_an_orchestrators_places_are_its_own() -> None:
    log = FamilyLog(max_children=1)
    log.begin("scout")
    log.begin("below", "scout")
    assert log.counted("scout") == ["below"]
    assert log.spawn("second", "scout")[-1] == "run second SpawnRefused"
    assert log.spawn("third")[-1] == "run third SpawnRefused"


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

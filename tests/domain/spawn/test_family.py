"""Runs and the sessions above them: who counts, until when, and what is written in which append."""

from collections.abc import Callable

import pytest

from domain.values.refusals import NotYet
from tests.support.builders import run_commands as ask
from tests.support.builders.family_log import FamilyLog, child_key


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


@pytest.mark.parametrize("bring", UNDER_WAY)
def test_a_child_counts_while_it_is_under_way(bring: Bring) -> None:
    log = FamilyLog()
    bring(log, "scout", "main")
    assert log.counted("main") == ["scout"]


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


@pytest.mark.parametrize("bring", PREPARING)
def test_a_stop_during_preparation_gives_the_place_back(bring: Bring) -> None:
    log = FamilyLog()
    bring(log, "scout", "main")
    assert log.tell("scout", ask.stop()) == ["run scout SpawnRefused", "session main ChildReleased"]


def test_a_stop_in_the_lane_gives_the_place_back() -> None:
    log = FamilyLog()
    queued(log, "scout", "main")
    assert log.tell("scout", ask.stop()) == ["run scout RunEnded", "session main ChildReleased"]


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


def test_a_descendant_that_has_ended_but_is_not_announced_is_still_waited_for() -> None:
    log = FamilyLog()
    log.begin("scout")
    log.begin("below", "scout")
    log.end("below")
    assert log.end("scout") == ["run scout RunEnded"]
    assert log.counted("main") == ["scout"]


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


def test_a_run_stopped_in_its_lane_with_children_below_waits_for_them_too() -> None:
    log = FamilyLog()
    queued(log, "scout", "main")
    log.begin("below", "scout")
    assert log.tell("scout", ask.stop()) == ["run scout RunEnded"]
    assert log.run("scout").pending_descendants == 1
    log.end("below")
    assert log.announce("below")[-1] == "session main ChildReleased"

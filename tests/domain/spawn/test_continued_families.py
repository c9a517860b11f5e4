"""Runs by which sessions go on, and the sessions above and below them: who counts and who waits."""

import pytest

from domain.spawn.continuation import RunIsActive
from domain.values.refusals import NotYet, SessionIsClosed
from tests.support.builders import continued_runs as sent
from tests.support.builders import run_commands as ask
from tests.support.builders.announced_families import announced
from tests.support.builders.family_log import FamilyLog


def unsettled(log: FamilyLog, name: str) -> list[str]:
    """Whom an announcement of this session's run waits for."""
    return [log.names[run] for run in log.session(name).unsettled]


def test_a_run_of_a_root_sessions_child_gives_its_place_back_with_its_end() -> None:
    log = announced("scout")
    log.go_on("again", "scout")
    assert log.counted("main") == ["again"]
    assert log.end("again") == ["run again RunEnded", "session main ChildReleased"]
    assert log.announce("again") == ["run again RunAnnounced"]
    assert (log.counted("main"), log.session("main").unsettled) == ([], ())


def test_a_run_that_is_stopped_in_its_lane_gives_its_place_back() -> None:
    log = announced("scout")
    log.message("again", "scout")
    assert log.tell("again", ask.stop()) == ["run again RunEnded", "session main ChildReleased"]
    assert log.announce("again") == ["run again RunAnnounced"]


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
    log.tell("scout", ask.archive() if by == "archive" else sent.close())
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


def test_a_session_that_was_put_away_has_no_more_places_than_others() -> None:
    log = announced("scout", "below", max_children=1)
    log.go_on("again", "scout")
    log.begin("other", "scout")
    log.finish("other", "again")
    log.tell("again", ask.archive())
    log.message("first", "below")
    assert log.message("second", "other") == [
        "run second MessageReceived",
        "run second SpawnRefused",
    ]


def test_a_session_that_is_closed_under_way_spawns_no_more_and_ends_as_others_do() -> None:
    log = FamilyLog()
    log.begin("scout")
    log.begin("below", "scout")
    assert log.tell("scout", sent.close()) == [
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


def test_four_levels_of_messages_are_settled_one_after_the_other_from_below() -> None:
    log = FamilyLog(max_spawn_depth=4)
    names = ("one", "two", "three")
    for by, name in zip(("main", *names), names, strict=False):
        log.begin(name, by)
    log.finish(*reversed(names))
    for name in names:
        log.go_on(f"{name} again", name)
    for name in names:
        log.end(f"{name} again")
    assert [log.run(f"{name} again").pending_descendants for name in names] == [1, 1, 0]
    assert log.announce("three again") == [
        "run three again RunAnnounced",
        "session two ChildSettled",
        "run two again DescendantsSettled",
        "session one ChildReleased",
    ]
    assert log.announce("two again")[-1] == "session main ChildReleased"
    assert log.announce("one again") == ["run one again RunAnnounced"]

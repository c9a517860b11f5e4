"""When a session takes no message: it is busy, put away, or not as it was read."""

from collections.abc import Callable

import pytest

from domain.run.facts import SpawnOptions
from domain.spawn.continuation import (
    Message,
    NoSession,
    RunIsActive,
    continue_session,
    must_take_messages,
)
from domain.values.refusals import ReadAgain, Rejected, SessionIsClosed
from tests.support.builders import continued_runs as sent
from tests.support.builders import run_commands as ask
from tests.support.builders.announced_families import announced
from tests.support.builders.family_log import FamilyLog, keep
from tests.support.builders.storytelling import ref, run_id

Bring = Callable[[FamilyLog], object]


def queued(log: FamilyLog) -> None:
    """In its lane."""
    log.spawn("scout")
    log.create("scout")


def started(log: FamilyLog) -> None:
    """Its runtime executes."""
    log.begin("scout")


def ended(log: FamilyLog) -> None:
    """Over, and nobody was told."""
    log.begin("scout")
    log.end("scout")


def waiting(log: FamilyLog) -> None:
    """Over, but not those below."""
    log.begin("scout")
    log.begin("below", "scout")
    log.end("scout")


def continued(log: FamilyLog) -> None:
    """Another message was faster."""
    log.begin("scout")
    log.finish("scout")
    log.message("second", "scout")


def stopping(log: FamilyLog) -> None:
    """Told to stop."""
    log.begin("scout")
    log.tell("scout", ask.stop())


BUSY: tuple[Bring, ...] = (queued, started, ended, waiting, continued, stopping)
PUT_AWAY: dict[str, Bring] = {
    "archived": lambda log: log.tell("scout", ask.archive()),
    "closed": lambda log: log.tell("scout", sent.close()),
}


@pytest.mark.parametrize("bring", BUSY)
def test_a_session_whose_last_run_is_not_announced_takes_no_message(bring: Bring) -> None:
    log = FamilyLog()
    bring(log)
    before = list(log.recorded)
    with pytest.raises(RunIsActive, match=r"is not announced yet; wait for it") as said:
        log.message("again", "scout")
    assert str(log.last("scout").run_id) in str(said.value)
    assert log.recorded == before


@pytest.mark.parametrize("bring", PUT_AWAY.values(), ids=PUT_AWAY)
def test_a_session_that_was_put_away_takes_no_message(bring: Bring) -> None:
    log = announced("scout")
    bring(log)
    before = list(log.recorded)
    with pytest.raises(SessionIsClosed, match=r"takes no messages; spawn a new child"):
        log.message("again", "scout")
    assert log.recorded == before


@pytest.mark.parametrize("bring", BUSY)
def test_a_session_that_was_closed_under_way_takes_no_message_and_never_will(bring: Bring) -> None:
    log = FamilyLog()
    bring(log)
    name = log.names[log.last("scout").run_id]
    log.tell(name, sent.close())
    with pytest.raises(SessionIsClosed):
        log.message("again", "scout")


@pytest.mark.parametrize(
    "options",
    [SpawnOptions(cleanup="delete"), SpawnOptions(mode="session")],
    ids=["deleted", "stopped"],
)
def test_a_session_that_is_put_away_at_once_takes_no_message_before_it_is(
    options: SpawnOptions,
) -> None:
    log = FamilyLog()
    log.spawn("scout", thread=True, options=options)
    log.create("scout")
    log.tell("scout", ask.stop())
    with pytest.raises(SessionIsClosed):
        log.message("again", "scout")
    log.announce("scout")
    with pytest.raises(SessionIsClosed):
        log.message("again", "scout")


def test_a_session_that_is_to_be_deleted_is_gone_on_with_while_messages_wait() -> None:
    log = FamilyLog()
    log.spawn("scout", options=SpawnOptions(cleanup="delete"))
    log.create("scout")
    log.tell("scout", ask.claim())
    log.tell("scout", ask.start(log.run("scout").epoch))
    log.tell("scout", sent.queue(run_id=run_id(2)))
    log.finish("scout")
    assert log.message("second", "scout", has_waited=True)[-1] == "run second RunQueued"
    assert log.run("second").cleanup == "delete"


def test_a_stopped_run_of_mode_run_is_gone_on_with() -> None:
    log = FamilyLog()
    log.spawn("scout")
    log.create("scout")
    log.tell("scout", ask.stop())
    log.announce("scout")
    assert log.message("again", "scout")[-1] == "run again RunQueued"


def test_those_that_do_not_wait_for_anybody_raise_what_there_is_to_raise() -> None:
    log = announced("scout")
    session, run = log.session("scout"), log.run("scout")
    must_take_messages(session, run)
    unsettled = session.changed({"unsettled": (run_id(9),)})
    with pytest.raises(RunIsActive):
        must_take_messages(unsettled, run)
    for closed in (
        (session.changed({"stage": "closed"}), run),
        (session, run.changed({"stage": "archived"})),
        (session, run.changed({"put_away_from": run.announced_at})),
    ):
        with pytest.raises(SessionIsClosed):
            must_take_messages(*closed)
    assert issubclass(NoSession, Rejected)


def test_of_two_messages_made_from_the_same_run_the_second_reads_again() -> None:
    log = announced("scout")
    stale = log.run("scout")
    log.message("first", "scout")
    with pytest.raises(ReadAgain, match="went on meanwhile"):
        log.message("second", "scout", last=stale)
    with pytest.raises(RunIsActive):
        log.message("second", "scout")


def test_a_message_is_judged_by_what_is_on_record_now_and_not_by_what_was_read() -> None:
    log = announced("scout")
    stale = log.run("scout")
    log.tell("scout", sent.close())
    with pytest.raises(SessionIsClosed):
        log.message("again", "scout", last=stale)


@pytest.mark.parametrize("missing", ["session", "run", "requester", "above"])
def test_what_is_not_among_what_was_read_is_read_again(missing: str) -> None:
    log = announced("top", "scout")
    last, fold = log.run("scout"), log.fold
    keys = {"session": log.key("scout"), "requester": log.key("top")}
    runs = {"run": last.run_id, "above": log.run("top").run_id}
    message = Message(
        run_id=run_id(9), text=ref("m"), by="admin", config_revision=1, max_children=5
    )
    with pytest.raises(ReadAgain):
        continue_session(
            {key: one for key, one in fold.sessions.items() if key != keys.get(missing)},
            {run: one for run, one in fold.runs.items() if run != runs.get(missing)},
            *(message, last, sent.planned(), keep),
        )


def test_what_was_read_too_early_does_not_speak_against_a_message() -> None:
    log = FamilyLog()
    log.begin("scout")
    stale = log.run("scout")
    log.finish("scout")
    assert log.message("again", "scout", last=stale)[-1] == "run again RunQueued"

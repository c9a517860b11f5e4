"""A run whose session went on is put away after the run that goes on with it, and never before."""

from pathlib import Path

import pytest

from domain.run.events import ContinuationPlanned
from domain.spawn.continuation import Message, continue_session
from domain.values.refusals import WrongStage
from tests.support.builders import run_commands as ask
from tests.support.builders.family_log import FamilyLog, keep
from tests.support.builders.storytelling import ref, run_id

PLANNED = Path(__file__).parents[2] / "histories" / "ContinuationPlanned.1.json"


def announced(log: FamilyLog, name: str) -> None:
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
    announced(log, "first")
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
    announced(log, "second")
    told = log.tell("second", ask.archive())
    assert told[-1] == "run first ArchiveScheduled"
    assert log.tell("first", ask.archive()) == ["run first RunArchived"]

"""The whole grid of a run: every stage with every command and every event.

The tables are in `tests.support.models.run_grid`.
"""

from collections.abc import Callable
from typing import get_args

import pytest

from domain.run.commands import RunCommand
from domain.run.events import EffectEvent, RunEvent
from domain.run.evolve import evolve
from domain.run.lifecycle import LIFECYCLE, RunStage
from domain.run.state import Run
from domain.values.refusals import (
    CannotDeliver,
    CorruptHistoryError,
    LostClaim,
    NotYet,
    ReadAgain,
    Rejected,
    StopWanted,
    WrongStage,
)
from tests.support.builders import continued_runs as continued
from tests.support.builders import effects
from tests.support.builders import run_commands as ask
from tests.support.builders import run_histories as past
from tests.support.builders import waiting_runs as waiting
from tests.support.builders.grid_histories import HAVING_ALL, HISTORIES
from tests.support.builders.storytelling import RunStory, given, requested, run_of, stamp
from tests.support.models.run_grid import COMMANDS_AT_STAGES, EVENTS_AT_STAGES

COMMANDS: dict[str, Callable[[Run], RunCommand]] = {
    "resume": lambda run: ask.resume(run.epoch),
    "resolve": lambda run: ask.resolve(run.epoch),
    "prepare": lambda run: ask.prepare(run.epoch),
    "begin": lambda run: ask.begin_step(run.epoch),
    "take": lambda run: ask.take_step(run.epoch),
    "create": lambda run: ask.create(run.epoch),
    "refuse": lambda run: ask.refuse(run.epoch),
    "claim": lambda run: ask.claim(),
    "start": lambda run: ask.start(run.epoch),
    "stop": lambda run: ask.stop(),
    "end": lambda run: ask.end(run.epoch),
    "announce": lambda run: ask.announce(pending_descendants=run.pending_descendants),
    "ack": lambda run: ask.acknowledge(),
    "archive": lambda run: ask.archive(),
    "undo": lambda run: ask.confirm_undo(),
    "fail": lambda run: ask.note_undo_failure(),
    "told": lambda run: effects.confirm_hook(),
    "untold": lambda run: effects.note_hook_failure(),
    "park": lambda run: effects.park_hook(),
    "close": lambda run: continued.close(),
    "settle": lambda run: waiting.settle(),
}
RECORDED: dict[str, tuple[str, ...]] = {
    "Resumed": ("PreparationResumed",),
    "Resolved": ("ScriptsResolved",),
    "Prepared": ("PreparationStarted",),
    "Begun": ("StepBegun",),
    "Taken": ("StepTaken",),
    "Tried": ("EffectAttempted",),
    "Parked": ("EffectParked",),
    "Created": ("SessionCreated", "RunQueued"),
    "Refused": ("SpawnRefused",),
    "Claimed": ("RunClaimed",),
    "Started": ("RunStarted",),
    "Stop": ("StopRequested",),
    "Ended": ("RunEnded",),
    "Announced": ("RunAnnounced",),
    "Acked": ("AnnouncementAcknowledged",),
    "Archived": ("RunArchived",),
    "Closing": ("ArchiveScheduled",),
    "Queued": ("DependencyMet", "RunQueued"),
    "nothing": (),
}
REFUSED: dict[str, type[Rejected]] = {
    ".": WrongStage,
    "LOST": LostClaim,
    "NOT-YET": NotYet,
    "STOPPING": StopWanted,
    "NO-INBOX": CannotDeliver,
    "AGAIN": ReadAgain,
}
EVENTS: tuple[RunEvent, ...] = (
    requested(),
    past.resumed(),
    past.resolved(),
    past.overridden(),
    past.prepared(),
    past.step_begun(),
    past.step_taken(),
    past.created(),
    past.queued(),
    effects.attempted(),
    effects.parked(),
    effects.redriven(),
    past.claimed(),
    past.started(),
    past.stop_requested(),
    past.ended(),
    past.settled(),
    past.announced(),
    past.acknowledged(),
    past.archived(),
    past.refused(),
    continued.message_received(),
    continued.planned(),
    continued.continued(),
    continued.scheduled(),
    continued.message_queued(),
    continued.messages_dropped(),
    continued.yield_requested(),
    continued.children_reported(),
    continued.continuation_failed(),
    waiting.waits(),
    waiting.met(),
)


def _rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines() if line.strip()]


_HEAD, *_BODY = _rows(COMMANDS_AT_STAGES)
CELLS = {stage: dict(zip(_HEAD[1:], cells, strict=True)) for stage, *cells in _BODY}
ALLOWED = {(stage, event): after for stage, event, after in _rows(EVENTS_AT_STAGES)}


def test_table_has_every_stage_and_every_command() -> None:
    assert [stage for stage, *_ in _BODY] == list(HISTORIES)
    assert _HEAD[1:] == list(COMMANDS)
    assert {run_of(*events).stage for events in HISTORIES.values()} == set(LIFECYCLE) - {"unborn"}


@pytest.mark.parametrize("stage", HISTORIES)
def test_at_this_stage_each_command_does_what_its_row_says(stage: str) -> None:
    story = given(*HISTORIES[stage])
    run = story.state
    assert run is not None
    expected = {
        name: REFUSED.get(cell) or [NAMED[event] for event in RECORDED[cell]]
        for name, cell in CELLS[stage].items()
        if cell in REFUSED or cell in RECORDED
    }
    assert {name: came_of(story, command(run)) for name, command in COMMANDS.items()} == expected


NAMED: dict[str, type[RunEvent]] = {type(event).__name__: type(event) for event in EVENTS}
HELD = ("resume", "resolve", "prepare", "begin", "take", "create", "refuse", "start", "end")
OVER = ("ended", "announced", "archived", "refused")


def came_of(story: RunStory, command: RunCommand) -> type[Rejected] | list[type[RunEvent]]:
    """Return the rejection of a command, or the types of the events that it records."""
    try:
        after = story.when(command).after()
    except Rejected as refused:
        return type(refused)
    return [type(event) for event in after.events[len(story.events) :]]


@pytest.mark.parametrize("stage", HISTORIES)
def test_replaced_holder_is_locked_out(stage: str) -> None:
    story = given(*HISTORIES[stage])
    assert story.state is not None
    replaced = story.state.changed({"epoch": story.state.epoch - 1})
    error = WrongStage if story.state.stage in OVER else LostClaim
    assert {came_of(story, COMMANDS[name](replaced)) for name in HELD} == {error}


@pytest.mark.parametrize("stage", LIFECYCLE)
def test_at_this_stage_each_event_is_history_or_corrupt(stage: RunStage) -> None:
    run = None if stage == "unborn" else _run_at(stage)
    for event in EVENTS:
        name = type(event).__name__
        after = ALLOWED.get((stage, name))
        happens: RunEvent = event
        if isinstance(event, EffectEvent) and stage not in ("announced", "archived", "refused"):
            # There is no announcement yet.
            happens = event.changed({"kind": "hook", "name": "subagentSpawned"})
        if after is None:
            with pytest.raises(CorruptHistoryError, match=name):
                evolve(run, happens, stamp(99))
        else:
            assert (name, evolve(run, happens, stamp(99)).stage) == (name, after)


def test_events_of_the_grid_are_all_there_are() -> None:
    assert {type(event) for event in EVENTS} == set(get_args(RunEvent))
    assert {name for _, name in ALLOWED} == set(NAMED)


def _run_at(stage: RunStage) -> Run:
    return run_of(*HAVING_ALL.get(stage, HISTORIES.get(stage, ())))

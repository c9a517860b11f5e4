"""The whole grid of a run: every stage by every command, and every stage by every event.

The tables are in `tests.support.run_grid`.
"""

from collections.abc import Callable
from typing import get_args

import pytest

from domain.refusals import (
    CannotDeliver,
    CorruptHistory,
    LostClaim,
    NotYet,
    Rejected,
    StopWanted,
    WrongStage,
)
from domain.run.commands import RunCommand
from domain.run.events import RunEvent
from domain.run.evolve import evolve
from domain.run.hooks import HOOK_ORDER
from domain.run.lifecycle import LIFECYCLE, Stage
from domain.run.state import Run
from tests.support import hooked_runs as hooked
from tests.support import run_commands as ask
from tests.support import run_histories as past
from tests.support.run_grid import COMMANDS_AT_STAGES, EVENTS_AT_STAGES
from tests.support.storytelling import given, requested, run_of, stamp

SILENTLY = past.announced(disposition="skipped", reason="its requester stopped it", text=None)
QUEUED_WITH_STEPS = (*past.a_run_with_steps(), past.created(), past.queued())
STARTED_WITH_HOOKS = (*hooked.a_run_with_hooks(), past.claimed(), past.started())
ENDED_WITH_HOOKS = (*STARTED_WITH_HOOKS, past.ended())
HISTORIES: dict[str, past.History] = {
    "requested": past.a_requested_run(),
    "scripts-resolved": past.a_resolved_run(),
    "prepared": past.a_prepared_run(),
    "begun": past.a_run_at_a_step(),
    "begun-elsewhere": (*past.a_run_at_a_step(), past.resumed()),
    "taken": past.a_run_with_steps(),
    "overridden": past.an_overridden_run(),
    "prepared-overridden": (*past.an_overridden_run(), past.prepared(agent_id="steward")),
    "begun-overridden": (*past.an_overridden_run(), past.prepared(), past.step_begun()),
    "session-created": past.a_created_run(),
    "queued": past.a_queued_run(),
    "claimed": past.a_claimed_run(),
    "claimed-stopping": (*past.a_claimed_run(), past.stop_requested()),
    "started": past.a_started_run(),
    "started-stopping": (*past.a_started_run(), past.stop_requested()),
    "ended": past.an_ended_run(),
    "ended-pending": past.an_ended_run_with_pending_descendants(),
    "ended-settled": (*past.an_ended_run_with_pending_descendants(), past.settled()),
    "announced": past.an_announced_run(),
    "announced-silently": (*past.an_ended_run(), SILENTLY),
    "acknowledged": (*past.an_announced_run(), past.acknowledged()),
    "archived": past.an_archived_run(),
    "refused": past.a_refused_run(),
    "refused-told": (*past.a_resolved_run(), past.refused_and_told()),
    "refused-undoing": (*past.a_run_with_steps(), past.refused()),
    "refused-trying": (*past.a_run_with_steps(), past.refused(), past.undo_failed()),
    "refused-undone": (*past.a_run_with_steps(), past.refused(), past.step_undone()),
    "queued-with-steps": QUEUED_WITH_STEPS,
    "ended-with-steps": (*QUEUED_WITH_STEPS, past.ended()),
    "announced-undoing": (*QUEUED_WITH_STEPS, past.ended(), past.announced()),
    "archived-undoing": (*QUEUED_WITH_STEPS, past.ended(), past.announced(), past.archived()),
    "queued-hooked": hooked.a_run_with_hooks(),
    "queued-trying": (*hooked.a_run_with_hooks(), hooked.hook_failed()),
    "queued-told": (*hooked.a_run_with_hooks(), hooked.hook_told()),
    "created-hooked": hooked.a_run_with_hooks()[:-1],
    "started-hooked": STARTED_WITH_HOOKS,
    "ended-hooked": ENDED_WITH_HOOKS,
    "announced-hooked": (*ENDED_WITH_HOOKS, past.announced()),
    "archived-hooked": (*ENDED_WITH_HOOKS, past.announced(), past.archived()),
}
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
    "told": lambda run: hooked.confirm_hook(),
    "untold": lambda run: hooked.note_hook_failure(),
    "park": lambda run: hooked.park_hook(),
}
RECORDED: dict[str, tuple[str, ...]] = {
    "Resumed": ("PreparationResumed",),
    "Resolved": ("ScriptsResolved",),
    "Prepared": ("PreparationStarted",),
    "Begun": ("StepBegun",),
    "Taken": ("StepTaken",),
    "Undone": ("StepUndone",),
    "Failed": ("StepUndoFailed",),
    "Told": ("HookTold",),
    "Untold": ("HookFailed",),
    "Parked": ("HookParked",),
    "Created": ("SessionCreated", "RunQueued"),
    "Refused": ("SpawnRefused",),
    "Claimed": ("RunClaimed",),
    "Started": ("RunStarted",),
    "Stop": ("StopRequested",),
    "Ended": ("RunEnded",),
    "Announced": ("RunAnnounced",),
    "Acked": ("AnnouncementAcknowledged",),
    "Archived": ("RunArchived",),
    "nothing": (),
}
REFUSED: dict[str, type[Rejected]] = {
    ".": WrongStage,
    "LOST": LostClaim,
    "NOT-YET": NotYet,
    "STOPPING": StopWanted,
    "NO-INBOX": CannotDeliver,
}
EVENTS: tuple[RunEvent, ...] = (
    requested(),
    past.resumed(),
    past.resolved(),
    past.overridden(),
    past.prepared(),
    past.step_begun(),
    past.step_taken(),
    past.step_undone(),
    past.undo_failed(),
    past.created(),
    past.queued(),
    hooked.hook_told(),
    hooked.hook_failed(),
    hooked.hook_parked(),
    past.claimed(),
    past.started(),
    past.stop_requested(),
    past.ended(),
    past.settled(),
    past.announced(),
    past.acknowledged(),
    past.archived(),
    past.refused(),
)


def _rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines() if line.strip()]


_HEAD, *_BODY = _rows(COMMANDS_AT_STAGES)
CELLS = [
    (stage, command, cell)
    for stage, *cells in _BODY
    for command, cell in zip(_HEAD[1:], cells, strict=True)
]
ALLOWED = {(stage, event): after for stage, event, after in _rows(EVENTS_AT_STAGES)}


def test_the_table_has_every_stage_and_every_command() -> None:
    assert [stage for stage, *_ in _BODY] == list(HISTORIES)
    assert _HEAD[1:] == list(COMMANDS)
    assert {run_of(*events).stage for events in HISTORIES.values()} == set(LIFECYCLE) - {"unborn"}


@pytest.mark.parametrize(("stage", "command", "cell"), CELLS)
def test_at_this_stage_this_command_does(stage: str, command: str, cell: str) -> None:
    story = given(*HISTORIES[stage])
    assert story.state is not None
    told = story.when(COMMANDS[command](story.state))
    if cell in REFUSED:
        told.refused(REFUSED[cell])
    else:
        told.then(*(NAMED[name] for name in RECORDED[cell]))


NAMED: dict[str, type[RunEvent]] = {type(event).__name__: type(event) for event in EVENTS}
HELD = ("resume", "resolve", "prepare", "begin", "take", "create", "refuse", "start", "end")
OVER = ("ended", "announced", "archived", "refused")


@pytest.mark.parametrize("stage", HISTORIES)
@pytest.mark.parametrize("command", HELD)
def test_who_was_replaced_can_do_nothing_any_more(stage: str, command: str) -> None:
    story = given(*HISTORIES[stage])
    assert story.state is not None
    replaced = story.state.model_copy(update={"epoch": story.state.epoch - 1})
    error = WrongStage if story.state.stage in OVER else LostClaim
    story.when(COMMANDS[command](replaced)).refused(error)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
@pytest.mark.parametrize("stage", LIFECYCLE)
def test_at_this_stage_this_event_is_history_or_corrupt(stage: Stage, event: RunEvent) -> None:
    run = None if stage == "unborn" else _run_at(stage)
    after = ALLOWED.get((stage, type(event).__name__))
    if after is None:
        with pytest.raises(CorruptHistory, match=type(event).__name__):
            evolve(run, event, stamp(99))
    else:
        assert evolve(run, event, stamp(99)).stage == after


def test_the_events_of_the_grid_are_all_there_are() -> None:
    assert {type(event) for event in EVENTS} == set(get_args(RunEvent))
    assert {name for _, name in ALLOWED} == set(NAMED)


WITH_ALL = (*past.a_run_with_steps(), past.created(hooks=HOOK_ORDER))
ENDED_WITH_ALL = (*WITH_ALL, past.queued(), past.claimed(), past.started(), past.ended())
HAVING_ALL: dict[Stage, past.History] = {
    "scripts-resolved": HISTORIES["begun"],
    "overridden": HISTORIES["begun-overridden"],
    "session-created": WITH_ALL,
    "queued": (*WITH_ALL, past.queued()),
    "started": ENDED_WITH_ALL[:-1],
    "ended": ENDED_WITH_ALL,
    "announced": (*ENDED_WITH_ALL, past.announced()),
    "archived": (*ENDED_WITH_ALL, past.announced(), past.archived()),
    "refused": (*past.a_run_with_steps(), past.refused_and_told()),
}
"""Histories with whatever an event at their stage may be about."""


def _run_at(stage: Stage) -> Run:
    return run_of(*HAVING_ALL.get(stage, HISTORIES.get(stage, ())))

"""How events change the steps of a run, and when a step is to be undone. It only grows."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import assert_never

from domain.run.events import (
    RunAnnounced,
    RunArchived,
    RunEnded,
    RunEvent,
)
from domain.run.request_events import SpawnRefused
from domain.run.state import Run
from domain.run.step_events import StepBegun, StepEvent, StepTaken, StepUndoFailed, StepUndone
from domain.run.steps import STEP_ORDER, StepName, StepState
from domain.stamp import Stamp
from domain.values.refusals import CorruptHistory

StepStates = tuple[StepState, ...]


def step_changes(run: Run, event: StepEvent, stamp: Stamp) -> dict[str, object]:
    """What an event of a step changes. `CorruptHistory` when it was never begun."""
    match event:
        case StepBegun():
            return {"steps": _begin_changes(run, event, stamp)}
        case StepTaken():
            taken: dict[str, object] = {
                "phase": "taken",
                "made": event.made,
                "can_undo": event.can_undo,
                "manifest": event.manifest,
                "file_count": event.file_count,
                "total_bytes": event.total_bytes,
                "fork": event.fork,
                "token": event.token,
            }
            changes: dict[str, object] = {"steps": _replace_step_state(run, event.step, taken)}
            if event.origin is not None:
                changes["delivery_origin"] = event.origin
            return changes
        case StepUndone():
            undone: dict[str, object] = {"phase": "undone", "undo_at": None, "undone": event.how}
            return {"steps": _replace_step_state(run, event.step, undone)}
        case StepUndoFailed():
            return {"steps": _postpone_undo(run, event, stamp)}
        case _:
            assert_never(event)


def undos_due(run: Run, event: RunEvent, stamp: Stamp) -> dict[str, object]:
    """What has to be undone because of an event of a run with steps."""
    now = stamp.recorded_at
    match event:
        case SpawnRefused():
            return _schedule_undos(run, _refusal_undo_time(run, event, now), lambda _: True)
        case RunEnded() if run.started_at is None or event.reason == "not_executable":
            return _schedule_undos(run, now, lambda step: _is_in_vain(run, event, step))
        case RunAnnounced() if run.options.mode == "run":
            return _schedule_undos(run, now, lambda step: _is_cleared_away(run, step))
        case RunArchived() if run.options.mode == "session":
            return _schedule_undos(run, now, lambda step: _is_cleared_away(run, step))
        case _:
            return {}


def _begin_changes(run: Run, event: StepBegun, stamp: Stamp) -> StepStates:
    before = run.step(event.step)
    state = StepState(
        name=event.step,
        key=event.key,
        epoch=run.epoch,
        begun_at=stamp.recorded_at,
        limit_seconds=event.limit_seconds,
        root=event.root,
        relative=event.relative,
    )
    if before is not None:
        return tuple(state if one is before else one for one in run.steps)
    return tuple(sorted((*run.steps, state), key=lambda one: STEP_ORDER.index(one.name)))


def _postpone_undo(run: Run, event: StepUndoFailed, stamp: Stamp) -> StepStates:
    """Tried again later, and what was begun before it no sooner: it may stand on that."""
    again = stamp.recorded_at + timedelta(seconds=event.retry_after_seconds)
    steps = _replace_step_state(run, event.step, {"undo_at": again, "undo_failures": event.attempt})
    place = STEP_ORDER.index(event.step)
    return tuple(
        one.changed({"undo_at": max(one.undo_at, again)})
        if one.undo_at is not None and STEP_ORDER.index(one.name) < place
        else one
        for one in steps
    )


def _refusal_undo_time(run: Run, event: SpawnRefused, now: datetime) -> datetime:
    """At once, unless somebody may still be at work: who makes a step looks at its limit, but not
    at the log. The step that the refusal names is one whose maker has come back."""
    under_way = (one for one in run.steps if one.phase == "begun" and one.name != event.step)
    ends = (one.begun_at + timedelta(seconds=one.limit_seconds) for one in under_way)
    return max((now, *ends))


def _is_in_vain(run: Run, event: RunEnded, step: StepState) -> bool:
    """Told to somebody outside, of a child that never started. Its conversation stays with it."""
    if step.name == "thread_binding":
        return run.options.mode == "run" or event.outcome == "stopped"
    return step.name == "context_engine"


def _is_cleared_away(run: Run, step: StepState) -> bool:
    """Files stay where they are kept with the session. A workspace is the agent's by now."""
    retain = run.attachments is not None and run.attachments.retain
    return step.name == "attachments" and (run.cleanup == "delete" or not retain)


def _schedule_undos(
    run: Run, at: datetime, wanted: Callable[[StepState], bool]
) -> dict[str, object]:
    """Not before what was made later and is to be undone still: it may stand on that."""
    steps: list[StepState] = []
    for one in reversed(run.steps):
        if one.undo_at is not None:
            at = max(at, one.undo_at)
        steps.insert(0, one.changed({"undo_at": at}) if wanted(one) else one)
    return {"steps": tuple(steps)}


def _replace_step_state(run: Run, name: StepName, changes: dict[str, object]) -> StepStates:
    if run.step(name) is None:
        raise CorruptHistory(f"step {name} was never begun")
    return tuple(one.changed(changes) if one.name == name else one for one in run.steps)

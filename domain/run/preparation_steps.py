"""Preparation steps: decisions, and the selection of steps to undo."""

from datetime import datetime, timedelta
from typing import assert_never

from domain.run.commands import BeginStep, TakeStep
from domain.run.events import (
    RunAnnounced,
    RunArchived,
    RunEnded,
    RunEvent,
    SpawnRefused,
    StepBegun,
    StepEvent,
    StepTaken,
)
from domain.run.facts import STEP_ORDER, StepName, StepState, step_key
from domain.run.state import PAUSES, Run, require_holder
from domain.values.record import Stamp
from domain.values.refusals import CorruptHistoryError, WrongStage


def begin_step(run: Run, command: BeginStep) -> tuple[StepBegun, ...]:
    """Begin a step. Steps run in order, one at a time; no-op if this holder has begun it already.

    Another holder records the step again, so that its time limit is counted anew.

    Raises:
        LostClaim: The command's epoch is not that of the current claim.
        WrongStage: The step is done, another step is not, or its recorded place is another one.
    """
    require_holder(run, command.epoch)
    name = command.step
    if run.child_session_key is None:
        raise WrongStage(f"begin step {name}", "not prepared")
    before = run.step(name)
    if before is not None and before.phase != "begun":
        raise WrongStage(f"begin step {name}", f"past it ({before.phase})")
    place = STEP_ORDER.index(name)
    for step in run.steps:
        if step.name != name and (step.phase != "taken" or STEP_ORDER.index(step.name) > place):
            raise WrongStage(f"begin step {name}", f"at step {step.name} ({step.phase})")
    if before is not None:
        if (before.root, before.relative) != (command.root, command.relative):
            raise WrongStage(f"begin step {name} elsewhere", "bound to its recorded place")
        if before.epoch == run.epoch:
            return ()
    return (
        StepBegun(
            step=name,
            key=step_key(run.run_id, name),
            limit_seconds=command.limit_seconds,
            root=command.root,
            relative=command.relative,
        ),
    )


def take_step(run: Run, command: TakeStep) -> tuple[StepTaken, ...]:
    """Record that a step is done; no-op if that is recorded.

    Raises:
        LostClaim: The command's epoch is not that of the current claim.
        WrongStage: This holder has not begun the step.
    """
    require_holder(run, command.epoch)
    state = run.step(command.step)
    if state is not None and state.phase == "taken":
        return ()
    if state is None or state.phase != "begun" or state.epoch != run.epoch:
        raise WrongStage(f"take step {command.step}", "not at this step under this claim")
    return (
        StepTaken(
            step=command.step,
            made=command.made,
            outcome=command.outcome,
            manifest=command.manifest,
            file_count=command.file_count,
            total_bytes=command.total_bytes,
            can_undo=command.can_undo,
            origin=command.origin,
            fork=command.fork,
            token=command.token,
        ),
    )


def require_taken(run: Run, action: str) -> None:
    """Raise `WrongStage` if a step is begun but not done."""
    for step in run.steps:
        if step.phase == "begun":
            raise WrongStage(action, f"at step {step.name}")


# How events change the steps of a run, and which steps to undo. This part only grows.


StepStates = tuple[StepState, ...]


def step_changes(run: Run, event: StepEvent, stamp: Stamp) -> dict[str, object]:
    """Return the fields that a step event changes.

    Raise `CorruptHistoryError` if it was never begun.
    """
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
        case _:
            assert_never(event)


def steps_to_undo(run: Run, event: RunEvent) -> tuple[StepState, ...]:
    """Return the steps that have to be undone because of this event."""
    match event:
        case SpawnRefused():
            return run.steps
        case RunEnded() if event.reason in PAUSES:
            return ()
        case RunEnded() if run.started_at is None or event.reason == "not_executable":
            return tuple(step for step in run.steps if _is_in_vain(run, event, step))
        case RunAnnounced() if run.options.mode == "run" and run.continued_by is None:
            return tuple(step for step in run.steps if _is_cleared_away(run, step))
        case RunArchived() if run.options.mode == "session" or run.end_reason in PAUSES:
            return tuple(step for step in run.steps if _is_cleared_away(run, step))
        case _:
            return ()


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
        return tuple(state if step is before else step for step in run.steps)
    return tuple(sorted((*run.steps, state), key=lambda step: STEP_ORDER.index(step.name)))


def refusal_undo_time(run: Run, event: SpawnRefused, now: datetime) -> datetime:
    """Return when to undo the steps of a refused spawn.

    That is at once, unless a step may still be in progress: its maker checks the time limit but not
    the log. The step named by the refusal has returned, so it is not waited for.
    """
    under_way = (step for step in run.steps if step.phase == "begun" and step.name != event.step)
    ends = (step.begun_at + timedelta(seconds=step.limit_seconds) for step in under_way)
    return max((now, *ends))


def _is_in_vain(run: Run, event: RunEnded, step: StepState) -> bool:
    """Return True if a hook must be notified that this child never started.

    A thread binding stays if the session stays open; a fork stays with its session.
    """
    if step.name == "thread_binding":
        return run.options.mode == "run" or event.outcome == "stopped"
    return step.name == "context_engine"


def _is_cleared_away(run: Run, step: StepState) -> bool:
    """Return True if the step's files are deleted with the session.

    Attachments stay if the session and its files are kept. A workspace belongs to the agent.
    """
    retain = run.attachments is not None and run.attachments.retain
    return step.name == "attachments" and (run.cleanup == "delete" or not retain)


def _replace_step_state(run: Run, name: StepName, changes: dict[str, object]) -> StepStates:
    if run.step(name) is None:
        raise CorruptHistoryError(f"step {name} was never begun")
    return tuple(step.changed(changes) if step.name == name else step for step in run.steps)

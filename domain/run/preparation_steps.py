"""Decisions about the steps of a preparation, and which of them have to be undone."""

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
from domain.run.state import PAUSES, Run, must_hold
from domain.values.record import Stamp
from domain.values.refusals import CorruptHistory, WrongStage


def begin_step(run: Run, command: BeginStep) -> tuple[StepBegun, ...]:
    """In their order, one at a time. The same holder begins a step once; another one begins it
    once more, so that the record says until when somebody may be at it."""
    must_hold(run, command.epoch)
    name = command.step
    if run.child_session_key is None:
        raise WrongStage(f"begin step {name}", "not prepared")
    before = run.step(name)
    if before is not None and before.phase != "begun":
        raise WrongStage(f"begin step {name}", f"past it ({before.phase})")
    place = STEP_ORDER.index(name)
    for one in run.steps:
        if one.name != name and (one.phase != "taken" or STEP_ORDER.index(one.name) > place):
            raise WrongStage(f"begin step {name}", f"at step {one.name} ({one.phase})")
    if before is not None:
        if (before.root, before.relative) != (command.root, command.relative):
            raise WrongStage(f"begin step {name} elsewhere", "bound to the place on record")
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
    """Only what this holder has begun; once."""
    must_hold(run, command.epoch)
    state = run.step(command.step)
    if state is not None and state.phase == "taken":
        return ()
    if state is None or state.phase != "begun" or state.epoch != run.epoch:
        raise WrongStage(f"take step {command.step}", "not at it under this claim")
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


def must_be_taken(run: Run, action: str) -> None:
    """`WrongStage` while a step is begun and not taken."""
    for one in run.steps:
        if one.phase == "begun":
            raise WrongStage(action, f"at step {one.name}")


# How events change the steps of a run, and which steps are to be undone. It only grows.


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
        case _:
            assert_never(event)


def steps_to_undo(run: Run, event: RunEvent) -> tuple[StepState, ...]:
    """Return the steps that have to be undone because of an event of their run."""
    match event:
        case SpawnRefused():
            return run.steps
        case RunEnded() if event.reason in PAUSES:
            return ()
        case RunEnded() if run.started_at is None or event.reason == "not_executable":
            return tuple(one for one in run.steps if _is_in_vain(run, event, one))
        case RunAnnounced() if run.options.mode == "run" and run.continued_by is None:
            return tuple(one for one in run.steps if _is_cleared_away(run, one))
        case RunArchived() if run.options.mode == "session" or run.end_reason in PAUSES:
            return tuple(one for one in run.steps if _is_cleared_away(run, one))
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
        return tuple(state if one is before else one for one in run.steps)
    return tuple(sorted((*run.steps, state), key=lambda one: STEP_ORDER.index(one.name)))


def refusal_undo_time(run: Run, event: SpawnRefused, now: datetime) -> datetime:
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


def _replace_step_state(run: Run, name: StepName, changes: dict[str, object]) -> StepStates:
    if run.step(name) is None:
        raise CorruptHistory(f"step {name} was never begun")
    return tuple(one.changed(changes) if one.name == name else one for one in run.steps)

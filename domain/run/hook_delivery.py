"""Decisions about the hooks that are told of a run."""

from datetime import timedelta
from typing import assert_never

from domain.run.commands import ConfirmHook, HookCommand, NoteHookFailure, ParkHook
from domain.run.events import (
    HookEvent,
    HookFailed,
    HookParked,
    HookTold,
    RunAnnounced,
    RunArchived,
    RunEnded,
    RunEvent,
    RunQueued,
)
from domain.run.facts import HOOK_ORDER, HOOKS_OF_ENDS, HookName, HookState
from domain.run.retry_delay import retry_after_seconds
from domain.run.state import PAUSES, Run
from domain.values.record import Stamp
from domain.values.refusals import CorruptHistory, NotYet, WrongStage


def decide_hook(run: Run, command: HookCommand) -> tuple[HookEvent, ...]:
    """What is recorded of a hook that was told, or was not."""
    match command:
        case ConfirmHook():
            return confirm_hook(run, command)
        case NoteHookFailure():
            return note_hook_failure(run, command)
        case ParkHook():
            return park_hook(run, command)
        case _:
            assert_never(command)


def confirm_hook(run: Run, command: ConfirmHook) -> tuple[HookTold, ...]:
    """Once."""
    state = _find_due_hook(run, command.hook)
    if state is None:
        return ()
    return (HookTold(hook=state.name, attempt=state.attempts + 1, status_code=command.status_code),)


def note_hook_failure(run: Run, command: NoteHookFailure) -> tuple[HookFailed, ...]:
    """Tried again after 1, 2, 4 … seconds, until it is told or parked."""
    state = _find_due_hook(run, command.hook)
    if state is None or command.attempt <= state.attempts:
        return ()
    return (
        HookFailed(
            hook=state.name,
            attempt=state.attempts + 1,
            error=command.error,
            retry_after_seconds=retry_after_seconds(state.attempts, command.retry_seconds_max),
        ),
    )


def park_hook(run: Run, command: ParkHook) -> tuple[HookParked, ...]:
    """For good. A failure that is on record parks nothing: somebody else noted it as one more."""
    state = _find_due_hook(run, command.hook)
    if state is None:
        return ()
    if command.error is None:
        return (HookParked(hook=state.name, attempts=state.attempts),)
    if command.attempt <= state.attempts:
        return ()
    return (HookParked(hook=state.name, attempts=state.attempts + 1, error=command.error),)


def _find_due_hook(run: Run, name: HookName) -> HookState | None:
    """The hook, if it is its turn; None when it is told or parked."""
    state = run.hook(name)
    if state is None:
        raise WrongStage(f"tell hook {name}", "one that does not tell it")
    if state.phase in ("told", "parked"):
        return None
    if state.phase == "passed_on":
        raise WrongStage(f"tell hook {name}", "continued by another, which tells it")
    if state.phase == "waiting":
        raise NotYet(f"hook {name} is not to be told yet")
    for one in run.hooks:
        if one is state:
            break
        if one.phase == "due":
            raise NotYet(f"hook {one.name} is to be told before hook {name}")
    return state


# How events change the hooks of a run, and when one is to be told. It only grows.


HookStates = tuple[HookState, ...]


def initial_hook_states(names: tuple[HookName, ...]) -> HookStates:
    """The hooks of a run whose child has just come to be, in their order."""
    return tuple(HookState(name=name) for name in HOOK_ORDER if name in names)


def hand_over_hooks(hooks: HookStates) -> HookStates:
    """The hooks of a run that another one continues: what was not due yet falls to that one."""
    return tuple(
        one.changed({"phase": "passed_on"}) if one.phase == "waiting" else one for one in hooks
    )


def hook_changes(run: Run, event: HookEvent, stamp: Stamp) -> dict[str, object]:
    """What an event of a hook changes. `CorruptHistory` when the run has no such hook."""
    if run.hook(event.hook) is None:
        raise CorruptHistory(f"hook {event.hook} is none of the run")
    match event:
        case HookTold():
            changes = {"phase": "told", "attempts": event.attempt, "due_at": None}
            return {"hooks": _replace_hook_state(run.hooks, event.hook, changes)}
        case HookParked():
            parked = {"phase": "parked", "attempts": event.attempts, "due_at": None}
            return {"hooks": _replace_hook_state(run.hooks, event.hook, parked)}
        case HookFailed():
            again = stamp.recorded_at + timedelta(seconds=event.retry_after_seconds)
            failed = {"attempts": event.attempt, "due_at": again}
            return {"hooks": _keep_order(_replace_hook_state(run.hooks, event.hook, failed))}
        case _:
            assert_never(event)


def hooks_due(run: Run, event: RunEvent, stamp: Stamp) -> dict[str, object]:
    """What has to be told because of an event of a run with hooks; `run` is as it is after it."""
    due = {"phase": "due", "due_at": stamp.recorded_at}
    states = run.hooks
    for name in _hooks_triggered_by(run, event):
        state = run.hook(name)
        if state is None or state.phase != "waiting":
            continue
        if name == "subagentEnded" and _binding_is_undone(run):
            continue
        states = _replace_hook_state(states, name, due)
    return {"hooks": _keep_order(states)} if states != run.hooks else {}


def _hooks_triggered_by(run: Run, event: RunEvent) -> tuple[HookName, ...]:
    """Of an end is told at once when nobody is told of the result, or it was a stop; else once the
    result is announced, and of a session that lives on when it is put away."""
    expects = run.expects_completion
    match event:
        case RunQueued():
            return ("subagentSpawned",)
        case RunEnded() if event.reason in PAUSES:
            # Its session goes on: the run in its place tells of the end.
            return ()
        case RunEnded() if event.outcome == "stopped":
            return HOOKS_OF_ENDS
        case RunEnded() if run.options.mode == "run" and not expects:
            return HOOKS_OF_ENDS
        case RunAnnounced() if run.options.mode == "run":
            return HOOKS_OF_ENDS
        case RunArchived() if run.options.mode == "session":
            return HOOKS_OF_ENDS
        case _:
            return ()


def _binding_is_undone(run: Run) -> bool:
    """Undoing the binding of a thread tells the same receiver that there is no child any more: of
    one run it is told that once."""
    step = run.step("thread_binding")
    return step is not None and (step.undo_at is not None or step.phase == "undone")


def _replace_hook_state(
    hooks: HookStates, name: HookName, changes: dict[str, object]
) -> HookStates:
    return tuple(one.changed(changes) if one.name == name else one for one in hooks)


def _keep_order(hooks: HookStates) -> HookStates:
    """None is due before one in front of it that is still to be told."""
    in_turn: list[HookState] = []
    for one in hooks:
        before = [other.due_at for other in in_turn if other.due_at is not None]
        late = one.due_at is not None and max((one.due_at, *before))
        in_turn.append(one.changed({"due_at": late}) if late else one)
    return tuple(in_turn)

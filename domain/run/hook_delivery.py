"""Decisions about the hooks that are told of a run."""

from typing import assert_never

from domain.run.hook_commands import ConfirmHook, HookCommand, NoteHookFailure, ParkHook
from domain.run.hook_events import HookEvent, HookFailed, HookName, HookParked, HookTold
from domain.run.hooks import HookState
from domain.run.preparation_steps import retry_after_seconds
from domain.run.state import Run
from domain.values.refusals import NotYet, WrongStage


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

"""A run that others are told of: what happens to its hooks, and what may be asked of them."""

from typing import Any

from domain.run.commands import ConfirmHook, NoteHookFailure, ParkHook
from domain.run.events import HookFailed, HookParked, HookTold
from domain.run.facts import HOOK_ORDER, HookName
from tests.support.builders import run_histories as past
from tests.support.builders.facts import fact_of
from tests.support.builders.storytelling import ref


def hook_told(hook: HookName = "subagentSpawned", **changes: Any) -> HookTold:
    """It has taken what it was told, at once."""
    return fact_of(HookTold, {"hook": hook, "attempt": 1, "status_code": 204} | changes)


def hook_failed(hook: HookName = "subagentSpawned", **changes: Any) -> HookFailed:
    """It could not be told at the first attempt."""
    plain = {"hook": hook, "attempt": 1, "error": ref("HTTP 500"), "retry_after_seconds": 1}
    return fact_of(HookFailed, plain | changes)


def hook_parked(hook: HookName = "subagentSpawned", **changes: Any) -> HookParked:
    """The eighth attempt was the last."""
    plain = {"hook": hook, "attempts": 8, "error": ref("HTTP 500")}
    return fact_of(HookParked, plain | changes)


def a_run_with_hooks() -> past.History:
    """In its lane; whom it is told may be told."""
    return (*past.a_prepared_run(), past.created(hooks=HOOK_ORDER), past.queued())


def confirm_hook(**changes: Any) -> ConfirmHook:
    """It was told that there is a child."""
    return ConfirmHook(**{"hook": "subagentSpawned", "status_code": 204, **changes})


def note_hook_failure(**changes: Any) -> NoteHookFailure:
    """It could not be told at the first attempt."""
    plain = {"hook": "subagentSpawned", "attempt": 1, "error": ref("HTTP 500")}
    return NoteHookFailure(**{**plain, "retry_seconds_max": 300, **changes})


def park_hook(**changes: Any) -> ParkHook:
    """The first attempt was the last."""
    plain = {"hook": "subagentSpawned", "attempt": 1, "error": ref("HTTP 500")}
    return ParkHook(**{**plain, **changes})

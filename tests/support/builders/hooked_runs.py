"""A run that others are told of: what happens to its hooks, and what may be asked of them."""

from typing import Any

from domain.run.commands import ConfirmEffect, NoteEffectFailure, ParkEffect
from domain.run.events import EffectAttempted, EffectParked
from domain.run.facts import HOOK_ORDER, HookName
from tests.support.builders import run_histories as past
from tests.support.builders.facts import fact_of
from tests.support.builders.storytelling import ref


def hook_told(hook: HookName = "subagentSpawned", **changes: Any) -> EffectAttempted:
    """It has taken what it was told, at once."""
    plain = {"kind": "hook", "name": hook, "attempt": 1, "status_code": 204}
    return fact_of(EffectAttempted, plain | changes)


def hook_failed(hook: HookName = "subagentSpawned", **changes: Any) -> EffectAttempted:
    """It could not be told at the first attempt."""
    plain = {"kind": "hook", "name": hook, "attempt": 1, "error": ref("HTTP 500")}
    return fact_of(EffectAttempted, plain | {"retry_after_seconds": 1} | changes)


def hook_parked(hook: HookName = "subagentSpawned", **changes: Any) -> EffectParked:
    """The eighth attempt was the last."""
    plain = {"kind": "hook", "name": hook, "attempts": 8, "reason": "attempts"}
    return fact_of(EffectParked, plain | changes)


def a_run_with_hooks() -> past.History:
    """In its lane; whom it is told may be told."""
    return (*past.a_prepared_run(), past.created(hooks=HOOK_ORDER), past.queued())


def confirm_hook(name: HookName = "subagentSpawned") -> ConfirmEffect:
    """It was told that there is a child."""
    return ConfirmEffect(kind="hook", name=name, status_code=204)


def note_hook_failure(name: HookName = "subagentSpawned", **changes: Any) -> NoteEffectFailure:
    """It could not be told at the first attempt."""
    plain: dict[str, Any] = {"attempt": 1, "error": ref("HTTP 500"), "attempts_max": 99}
    plain |= {"retry_seconds_max": 300}
    return NoteEffectFailure(kind="hook", name=name, **plain | changes)


def park_hook(name: HookName = "subagentSpawned") -> ParkEffect:
    """Its configuration is gone."""
    return ParkEffect(kind="hook", name=name, reason="not_configured")

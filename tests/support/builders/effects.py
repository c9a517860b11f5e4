"""Events and commands of a run's effects: webhooks and hooks."""

from typing import Any

from domain.run.commands import ConfirmEffect, NoteEffectFailure, ParkEffect, RedriveEffects
from domain.run.events import EffectAttempted, EffectParked, EffectRedriven
from domain.run.facts import HOOK_ORDER, HookName
from tests.support.builders import run_histories as past
from tests.support.builders.facts import fact_of
from tests.support.builders.storytelling import ref

# Events of announcements to a webhook, and the possible commands.


def an_announced_run(*webhooks: str) -> past.History:
    sent_to = webhooks or ("gateway",)
    return (*past.an_ended_run(), past.announced(webhooks=sent_to))


GATEWAY = {"kind": "webhook", "name": "gateway"}


def attempted(**changes: Any) -> EffectAttempted:
    plain: dict[str, Any] = {**GATEWAY, "attempt": 1, "status_code": 500}
    plain |= {"error": ref("HTTP 500"), "retry_after_seconds": 1}
    return fact_of(EffectAttempted, plain | changes)


def parked(**changes: Any) -> EffectParked:
    """Return the event of a parked delivery."""
    return fact_of(EffectParked, {**GATEWAY, "attempts": 1, "reason": "attempts"} | changes)


def redriven(**changes: Any) -> EffectRedriven:
    plain = {**GATEWAY, "by": "admin", "reason": ref("it is back")}
    return fact_of(EffectRedriven, plain | changes)


def failed(**changes: Any) -> NoteEffectFailure:
    """Return the command to note a failed delivery."""
    plain: dict[str, Any] = {**GATEWAY, "attempt": 1, "status_code": 500, "error": ref("HTTP 500")}
    return NoteEffectFailure(**plain | {"attempts_max": 3, "retry_seconds_max": 3600} | changes)


def park(**changes: Any) -> ParkEffect:
    plain: dict[str, Any] = {**GATEWAY, "reason": "not_configured"}
    return ParkEffect(**plain | changes)


def redrive(webhook: str | None = None) -> RedriveEffects:
    return RedriveEffects(kind="webhook", name=webhook, by="admin", reason=ref("it is back"))


# A run with hooks: their events, and the possible commands.


def hook_told(hook: HookName = "subagentSpawned", **changes: Any) -> EffectAttempted:
    plain = {"kind": "hook", "name": hook, "attempt": 1, "status_code": 204}
    return fact_of(EffectAttempted, plain | changes)


def hook_failed(hook: HookName = "subagentSpawned", **changes: Any) -> EffectAttempted:
    """Return the event of a hook whose first call failed."""
    plain = {"kind": "hook", "name": hook, "attempt": 1, "error": ref("HTTP 500")}
    return fact_of(EffectAttempted, plain | {"retry_after_seconds": 1} | changes)


def hook_parked(hook: HookName = "subagentSpawned", **changes: Any) -> EffectParked:
    plain = {"kind": "hook", "name": hook, "attempts": 8, "reason": "attempts"}
    return fact_of(EffectParked, plain | changes)


def a_run_with_hooks() -> past.History:
    """Return the events of a queued run with all hooks."""
    return (*past.a_prepared_run(), past.created(hooks=HOOK_ORDER), past.queued())


def confirm_hook(name: HookName = "subagentSpawned") -> ConfirmEffect:
    return ConfirmEffect(kind="hook", name=name, status_code=204)


def note_hook_failure(name: HookName = "subagentSpawned", **changes: Any) -> NoteEffectFailure:
    """Return the command to note that the first call of a hook failed."""
    plain: dict[str, Any] = {"attempt": 1, "error": ref("HTTP 500"), "attempts_max": 99}
    plain |= {"retry_seconds_max": 300}
    return NoteEffectFailure(kind="hook", name=name, **plain | changes)


def park_hook(name: HookName = "subagentSpawned") -> ParkEffect:
    return ParkEffect(kind="hook", name=name, reason="not_configured")

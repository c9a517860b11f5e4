"""What happens to announcements that are sent to a webhook, and what may be asked of them."""

from typing import Any

from domain.run.commands import ConfirmEffect, NoteEffectFailure, ParkEffect, RedriveEffects
from domain.run.events import EffectAttempted, EffectParked, EffectRedriven
from tests.support.builders import run_histories as past
from tests.support.builders.facts import fact_of
from tests.support.builders.storytelling import ref


def an_announced_run(*webhooks: str) -> past.History:
    """It is announced, and to be sent to these."""
    sent_to = webhooks or ("gateway",)
    return (*past.an_ended_run(), past.announced(webhooks=sent_to))


GATEWAY = {"kind": "webhook", "name": "gateway"}


def attempted(**changes: Any) -> EffectAttempted:
    """It failed, and is tried again a second later."""
    plain: dict[str, Any] = {**GATEWAY, "attempt": 1, "status_code": 500}
    plain |= {"error": ref("HTTP 500"), "retry_after_seconds": 1}
    return fact_of(EffectAttempted, plain | changes)


def parked(**changes: Any) -> EffectParked:
    """It is not sent any more."""
    return fact_of(EffectParked, {**GATEWAY, "attempts": 1, "reason": "attempts"} | changes)


def redriven(**changes: Any) -> EffectRedriven:
    """Somebody has it sent again."""
    plain = {**GATEWAY, "by": "admin", "reason": ref("it is back")}
    return fact_of(EffectRedriven, plain | changes)


def took(**changes: Any) -> ConfirmEffect:
    """The receiver has taken it."""
    plain: dict[str, Any] = {**GATEWAY, "status_code": 204}
    return ConfirmEffect(**plain | changes)


def failed(**changes: Any) -> NoteEffectFailure:
    """The receiver has not taken it."""
    plain: dict[str, Any] = {**GATEWAY, "attempt": 1, "status_code": 500, "error": ref("HTTP 500")}
    return NoteEffectFailure(**plain | {"attempts_max": 3, "retry_seconds_max": 3600} | changes)


def park(**changes: Any) -> ParkEffect:
    """There is no such webhook any more."""
    plain: dict[str, Any] = {**GATEWAY, "reason": "not_configured"}
    return ParkEffect(**plain | changes)


def redrive(webhook: str | None = None) -> RedriveEffects:
    """Send it again."""
    return RedriveEffects(kind="webhook", name=webhook, by="admin", reason=ref("it is back"))

"""What happens to announcements that are sent to a webhook, and what may be asked of them."""

from typing import Any

from domain.run.commands import NoteDelivery, ParkDelivery, RedriveDeliveries
from domain.run.events import DeliveryAttempted, DeliveryParked, DeliveryRedriven
from tests.support.builders import run_histories as past
from tests.support.builders.facts import fact_of
from tests.support.builders.storytelling import ref


def an_announced_run(*webhooks: str) -> past.History:
    """It is announced, and to be sent to these."""
    sent_to = webhooks or ("gateway",)
    return (*past.an_ended_run(), past.announced(webhooks=sent_to))


def attempted(**changes: Any) -> DeliveryAttempted:
    """It failed, and is tried again a second later."""
    plain: dict[str, Any] = {"webhook": "gateway", "attempt": 1, "status_code": 500}
    plain |= {"error": ref("HTTP 500"), "retry_after_seconds": 1}
    return fact_of(DeliveryAttempted, plain | changes)


def parked(**changes: Any) -> DeliveryParked:
    """It is not sent any more."""
    plain = {"webhook": "gateway", "attempts": 1, "reason": "attempts"}
    return fact_of(DeliveryParked, plain | changes)


def redriven(**changes: Any) -> DeliveryRedriven:
    """Somebody has it sent again."""
    plain = {"webhook": "gateway", "by": "admin", "reason": ref("it is back")}
    return fact_of(DeliveryRedriven, plain | changes)


def took(**changes: Any) -> NoteDelivery:
    """The receiver has taken it."""
    return NoteDelivery(**{"webhook": "gateway", "attempt": 1, "status_code": 204, **changes})


def failed(**changes: Any) -> NoteDelivery:
    """The receiver has not taken it."""
    plain = {"webhook": "gateway", "attempt": 1, "status_code": 500, "error": ref("HTTP 500")}
    return NoteDelivery(**{**plain, "attempts_max": 3, "retry_seconds_max": 3600, **changes})


def park(**changes: Any) -> ParkDelivery:
    """There is no such webhook any more."""
    return ParkDelivery(**{"webhook": "gateway", "reason": "not_configured", **changes})


def redrive(webhook: str | None = None) -> RedriveDeliveries:
    """Send it again."""
    return RedriveDeliveries(webhook=webhook, by="admin", reason=ref("it is back"))

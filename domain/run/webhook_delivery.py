"""Decisions about the deliveries of an announcement to webhooks, and how their events change the
run. The latter only grow and judge nothing."""

from datetime import timedelta
from hashlib import sha256
from typing import assert_never

from domain.run.commands import DeliveryCommand, NoteDelivery, ParkDelivery, RedriveDeliveries
from domain.run.events import (
    DeliveryAttempted,
    DeliveryEvent,
    DeliveryParked,
    DeliveryRedriven,
)
from domain.run.facts import DeliveryState, ParkReason
from domain.run.retry_delay import retry_after_seconds
from domain.run.state import Run
from domain.values.record import Stamp
from domain.values.refusals import CorruptHistory, Rejected

PAUSE_SECONDS_MAX = 86_400
"""A receiver that wants to be left alone for longer is asked again after a day."""


class NothingParked(Rejected):
    """There is no delivery that could be redriven."""


def decide_delivery(run: Run, command: DeliveryCommand) -> tuple[DeliveryEvent, ...]:
    """What is recorded of a delivery."""
    match command:
        case NoteDelivery():
            return note_delivery(run, command)
        case ParkDelivery():
            state = _due_delivery(run, command.webhook)
            if state is None:
                return ()
            parked = DeliveryParked(
                webhook=state.webhook, attempts=state.attempts, reason=command.reason
            )
            return (parked,)
        case RedriveDeliveries():
            return redrive_deliveries(run, command)
        case _:
            assert_never(command)


def note_delivery(run: Run, command: NoteDelivery) -> tuple[DeliveryEvent, ...]:
    """Each attempt once, whoever made it; the last one that failed parks the delivery."""
    state = _due_delivery(run, command.webhook)
    if state is None or command.attempt <= state.attempts:
        return ()
    attempt = state.attempts + 1
    failures = state.attempts - state.attempts_before
    is_last = command.refused or failures + 1 >= command.attempts_max
    pause = None
    if command.error is not None and not is_last:
        pause = _pause_seconds(run, failures, command)
    attempted = DeliveryAttempted(
        webhook=state.webhook,
        attempt=attempt,
        status_code=command.status_code,
        error=command.error,
        retry_after_seconds=pause,
    )
    if command.error is None or not is_last:
        return (attempted,)
    reason: ParkReason = "refused" if command.refused else "attempts"
    return (attempted, DeliveryParked(webhook=state.webhook, attempts=attempt, reason=reason))


def redrive_deliveries(run: Run, command: RedriveDeliveries) -> tuple[DeliveryRedriven, ...]:
    """Each that is parked, or the one to this webhook. Raises `NothingParked`."""
    parked = [
        one.webhook
        for one in run.deliveries or ()
        if one.phase == "parked" and command.webhook in (None, one.webhook)
    ]
    if not parked:
        where = f" to webhook {command.webhook}" if command.webhook is not None else ""
        raise NothingParked(f"run {run.run_id} has no parked delivery{where}")
    return tuple(
        DeliveryRedriven(webhook=one, by=command.by, reason=command.reason) for one in parked
    )


def _pause_seconds(run: Run, failures: int, command: NoteDelivery) -> int:
    """So that a receiver which was away is not asked by all at once, each pause is its own: half of
    the longest at least."""
    longest = retry_after_seconds(failures, command.retry_seconds_max)
    seed = f"{run.run_id} {command.webhook} {command.attempt}".encode()
    part = int.from_bytes(sha256(seed).digest()[:4], "big") / 2**32
    pause = max(1, round(longest * (1 - part / 2)))
    return max(pause, min(command.pause_seconds, PAUSE_SECONDS_MAX))


def _due_delivery(run: Run, webhook: str) -> DeliveryState | None:
    """The delivery, if it is to be made; None when it was made, or is parked."""
    state = run.delivery(webhook)
    return state if state is not None and state.phase == "due" else None


def initial_deliveries(webhooks: tuple[str, ...], stamp: Stamp) -> dict[str, object]:
    """What an announcement changes that is sent to these webhooks."""
    if not webhooks:
        return {}
    at = stamp.recorded_at
    return {"deliveries": tuple(DeliveryState(webhook=one, due_at=at) for one in webhooks)}


def delivery_changes(run: Run, event: DeliveryEvent, stamp: Stamp) -> dict[str, object]:
    """What such an event changes. `CorruptHistory` when the run has no such delivery."""
    if run.delivery(event.webhook) is None or run.inbox is None:
        raise CorruptHistory(f"the announcement is not sent to webhook {event.webhook}")
    match event:
        case DeliveryAttempted():
            pause = timedelta(seconds=event.retry_after_seconds or 0)
            changes: dict[str, object] = {
                "attempts": event.attempt,
                "status_code": event.status_code,
                "error": event.error,
                "due_at": stamp.recorded_at + pause if event.error is not None else None,
            }
            if event.error is None:
                changes["phase"] = "delivered"
            return {"deliveries": _replaced(run, event.webhook, changes)}
        case DeliveryParked():
            changes = {"phase": "parked", "due_at": None, "reason": event.reason}
            return {
                "deliveries": _replaced(run, event.webhook, changes),
                # Whoever reads the inbox is told, also when the announcement was taken already.
                "inbox": run.inbox.changed(
                    {
                        "position": stamp.position,
                        "first_position": run.inbox.announced_position,
                        "acknowledged_at": None,
                    }
                ),
            }
        case DeliveryRedriven():
            state = run.delivery(event.webhook)
            assert state is not None
            changes = {
                "phase": "due",
                "due_at": stamp.recorded_at,
                "reason": None,
                "attempts_before": state.attempts,
            }
            return {"deliveries": _replaced(run, event.webhook, changes)}
        case _:
            assert_never(event)


def _replaced(run: Run, webhook: str, changes: dict[str, object]) -> tuple[DeliveryState, ...]:
    return tuple(
        one.changed(changes) if one.webhook == webhook else one for one in run.deliveries or ()
    )

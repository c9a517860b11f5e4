"""Continuing a session after a run: queued messages, yielded turns and steering.

Holds the decisions, and the changes that their events make. The latter only grow and decide
nothing.
"""

from datetime import timedelta
from typing import assert_never
from uuid import UUID

from domain.run.commands import DropMessage, FailContinuation, QueueMessage, YieldRun
from domain.run.events import (
    ArchiveScheduled,
    ChildrenReported,
    ContinuationEvent,
    ContinuationFailed,
    ContinuationPlanned,
    MessageQueued,
    MessageReceived,
    MessagesDropped,
    RunContinued,
    RunEnded,
    RunEvent,
    YieldRequested,
)
from domain.run.facts import QueuedMessage
from domain.run.lifecycle import PREPARING
from domain.run.state import Run
from domain.values.record import Stamp
from domain.values.refusals import Rejected, WrongStage

QUEUED_MESSAGES_MAX = 20
STEER_CHARACTERS_MAX = 4_000
STEER_SECONDS_MIN = 2.0
"""Minimum pause between two steering messages from one caller to one session."""


class QueueFull(Rejected):
    """The session's message queue is full (`QUEUED_MESSAGES_MAX`)."""


class SteeredTooSoon(Rejected):
    """The same caller steered the session less than `STEER_SECONDS_MIN` ago."""


class SteerTooLong(Rejected):
    """The steering message exceeds `STEER_CHARACTERS_MAX`."""


class CannotYield(Rejected):
    """The run has not started or is over, or it has no sub-agent to wait for."""


def require_steerable(text: str) -> None:
    """Raise `SteerTooLong` if a steering message is too long."""
    if len(text) > STEER_CHARACTERS_MAX:
        raise SteerTooLong(f"Message too long ({len(text)} chars, max {STEER_CHARACTERS_MAX}).")


def queue_message(run: Run, command: QueueMessage) -> tuple[RunEvent, ...]:
    """Queue a message for the run's session.

    If the message steers a run that is not claimed yet, the run ends at once.

    Raises:
        QueueFull: The queue is full.
        SteeredTooSoon: The caller steered this session less than `STEER_SECONDS_MIN` ago.
        WrongStage: The run is still being prepared.
    """
    if run.stage in PREPARING:
        raise WrongStage(command.action, run.stage)
    waiting = run.queue or ()
    if len(waiting) >= QUEUED_MESSAGES_MAX:
        raise QueueFull(
            f"{QUEUED_MESSAGES_MAX} messages are already queued for this session; retry when it"
            " has taken one"
        )
    if command.cause == "steer":
        since = command.at - run.steered_at if run.steered_at is not None else None
        if (
            run.steered_by == command.by
            and since is not None
            and since < timedelta(seconds=STEER_SECONDS_MIN)
        ):
            raise SteeredTooSoon(
                "Steer rate limit exceeded. Wait a moment before sending another steer."
            )
    queued = MessageQueued(
        run_id=command.run_id,
        message=command.message,
        by=command.by,
        cause=command.cause,
        traceparent=command.traceparent,
    )
    if command.cause == "steer" and run.stage in ("session-created", "queued") and not run.holder:
        return (queued, RunEnded(outcome="stopped", reason="steered"))
    return (queued,)


def yield_run(run: Run, command: YieldRun) -> tuple[RunEvent, ...]:
    """Record that the run yields its turn; no-op if it has yielded already.

    Raises:
        CannotYield: The run is not at stage `started`, or has no sub-agent to wait for.
    """
    if run.stage != "started":
        raise CannotYield(
            f"run {run.run_id} has not started or is over (stage {run.stage}); only a started"
            " run can yield"
        )
    if run.yielded_by is not None:
        return ()
    if not command.awaits:
        raise CannotYield(
            "nothing to wait for: this session has no active sub-agent and no undelivered"
            " report. Spawn one first, or end with an answer"
        )
    return (YieldRequested(by=command.by),)


def fail_continuation(command: FailContinuation) -> tuple[RunEvent, ...]:
    """Record that a continuation was refused.

    The session continues with the next queued message; without one, the run is announced after all.
    """
    return (ContinuationFailed(run_id=command.run_id, error=command.error),)


def drop_message(run: Run, command: DropMessage) -> tuple[RunEvent, ...]:
    """Drop one queued message; no-op if it does not wait.

    If the run was ended for this message and no other one waits, the run is announced after all.
    """
    if all(message.run_id != command.run_id for message in run.queue or ()):
        return ()
    is_last = _without(run, (command.run_id,)) is None
    if is_last and run.stage == "ended" and run.end_reason == "steered":
        return (ContinuationFailed(run_id=command.run_id, error=None),)
    return (MessagesDropped(run_ids=(command.run_id,)),)


def drop_messages(run: Run) -> tuple[RunEvent, ...]:
    """Drop all queued messages; no-op if the queue is empty."""
    if not run.queue:
        return ()
    return (MessagesDropped(run_ids=tuple(message.run_id for message in run.queue)),)


def continuation_changes(run: Run, event: ContinuationEvent, stamp: Stamp) -> dict[str, object]:
    """Return the fields of an existing run that a continuation event changes."""
    match event:
        case MessageReceived():
            return {}
        case ContinuationPlanned():
            return _plan_changes(event)
        case RunContinued():
            # The newest run of a session is archived first, so this one has no due time.
            return {"continued_by": event.run_id, "archive_at": None, "queue": None}
        case ArchiveScheduled():
            return _schedule_changes(run, stamp)
        case MessageQueued():
            return _queue_changes(run, event, stamp)
        case MessagesDropped():
            return {"queue": _without(run, event.run_ids)}
        case YieldRequested():
            return {"yielded_by": event.by}
        case ChildrenReported():
            return {"wake_at": run.wake_at or stamp.recorded_at}
        case ContinuationFailed():
            return _failure_changes(run, event)
        case _:
            assert_never(event)


def carried_queue(event: MessageReceived) -> tuple[QueuedMessage, ...] | None:
    """Return the queue that a new run inherits, or None if empty. None of it steers the new run."""
    return tuple(message.changed({"cause": "message"}) for message in event.queued) or None


def _plan_changes(event: ContinuationPlanned) -> dict[str, object]:
    changes: dict[str, object] = {
        "role": event.role,
        "control_scope": event.control_scope,
        "plan": event.plan,
        "warnings": event.warnings,
    }
    if event.direct_delivery:
        changes["direct_delivery"] = True
    return changes


def _schedule_changes(run: Run, stamp: Stamp) -> dict[str, object]:
    changes: dict[str, object] = {"put_away_from": stamp.recorded_at}
    if run.stage == "announced":
        changes["archive_at"] = stamp.recorded_at
    return changes


def _queue_changes(run: Run, event: MessageQueued, stamp: Stamp) -> dict[str, object]:
    waiting = run.queue or ()
    message = QueuedMessage(
        run_id=event.run_id,
        message=event.message,
        by=event.by,
        cause=event.cause,
        queued_at=stamp.recorded_at,
        traceparent=event.traceparent,
    )
    if event.cause != "steer":
        return {"queue": (*waiting, message)}
    place = sum(message.cause == "steer" for message in waiting)
    return {
        "queue": (*waiting[:place], message, *waiting[place:]),
        "steered_by": event.by,
        "steered_at": stamp.recorded_at,
    }


def _failure_changes(run: Run, event: ContinuationFailed) -> dict[str, object]:
    changes: dict[str, object] = {"queue": _without(run, (event.run_id,))}
    if run.stage == "ended":
        changes["continuation_failed"] = True
        changes["continuation_error"] = event.error
    return changes


def _without(run: Run, run_ids: tuple[UUID, ...]) -> tuple[QueuedMessage, ...] | None:
    return tuple(message for message in run.queue or () if message.run_id not in run_ids) or None

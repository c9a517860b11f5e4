"""How a session goes on behind a run: messages that wait, a turn that is yielded, a run that is
steered. Decisions, and how their events change the run; the latter only grow and judge nothing.
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
"""Between two messages by which one caller steers one session."""


class QueueFull(Rejected):
    """So many messages wait for the session that no further one is taken."""


class SteeredTooSoon(Rejected):
    """The same caller has steered the session a moment ago."""


class SteerTooLong(Rejected):
    """A message that steers has a limit of its own."""


class CannotYield(Rejected):
    """There is nothing at work that could yield, or nothing that it could wait for."""


def must_steer(text: str) -> None:
    """Raises `SteerTooLong`."""
    if len(text) > STEER_CHARACTERS_MAX:
        raise SteerTooLong(f"Message too long ({len(text)} chars, max {STEER_CHARACTERS_MAX}).")


def queue_message(run: Run, command: QueueMessage) -> tuple[RunEvent, ...]:
    """It waits; a run that is steered and that nobody has claimed is over at once."""
    if run.stage in PREPARING:
        raise WrongStage(command.action, run.stage)
    waiting = run.queue or ()
    if len(waiting) >= QUEUED_MESSAGES_MAX:
        raise QueueFull(
            f"{QUEUED_MESSAGES_MAX} messages wait for this session already; wait until it has taken"
            " one, then send the message again"
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
    """Once: repeating it changes nothing."""
    if run.stage != "started":
        raise CannotYield(
            f"run {run.run_id} is not at work (stage {run.stage}); only a run at work can yield"
        )
    if run.yielded_by is not None:
        return ()
    if not command.awaits:
        raise CannotYield(
            "there is nothing to wait for: this session has no sub-agent that is at work or whose"
            " report it has not been given. Spawn one first, or end with an answer"
        )
    return (YieldRequested(by=command.by),)


def fail_continuation(command: FailContinuation) -> tuple[RunEvent, ...]:
    """The run is announced after all, or its session goes on with the next message."""
    return (ContinuationFailed(run_id=command.run_id, error=command.error),)


def drop_message(run: Run, command: DropMessage) -> tuple[RunEvent, ...]:
    """Drop one message. If the run was ended for it and nothing else waits, the run is announced
    after all."""
    if all(one.run_id != command.run_id for one in run.queue or ()):
        return ()
    is_last = _without(run, (command.run_id,)) is None
    if is_last and run.stage == "ended" and run.end_reason == "steered":
        return (ContinuationFailed(run_id=command.run_id, error=None),)
    return (MessagesDropped(run_ids=(command.run_id,)),)


def drop_messages(run: Run) -> tuple[RunEvent, ...]:
    """Nothing is to go on with what waits; nothing when nothing waits."""
    if not run.queue:
        return ()
    return (MessagesDropped(run_ids=tuple(one.run_id for one in run.queue)),)


def continuation_changes(run: Run, event: ContinuationEvent, stamp: Stamp) -> dict[str, object]:
    """What such an event changes in a run that is there."""
    match event:
        case MessageReceived():
            return {}
        case ContinuationPlanned():
            return _plan_changes(event)
        case RunContinued():
            # The last run of a session is put away first.
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
    """The messages that wait for a new run from its beginning: none of them steers it."""
    return tuple(one.changed({"cause": "message"}) for one in event.queued) or None


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
    place = sum(one.cause == "steer" for one in waiting)
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
    return tuple(one for one in run.queue or () if one.run_id not in run_ids) or None

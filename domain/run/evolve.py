"""Apply events to the state of a run. This code only grows and makes no decisions."""

from datetime import datetime, timedelta
from typing import assert_never

from domain.run.continuation import carried_queue, continuation_changes
from domain.run.effects import EFFECT_TRIGGERS, effect_changes, effects_after
from domain.run.events import (
    AgentOverridden,
    AnnouncementAcknowledged,
    ContinuationEvent,
    DependencyMet,
    DescendantsSettled,
    EffectEvent,
    MessageReceived,
    PreparationResumed,
    PreparationStarted,
    RunAnnounced,
    RunArchived,
    RunClaimed,
    RunEnded,
    RunEvent,
    RunQueued,
    RunStarted,
    RunWaits,
    ScriptsResolved,
    SessionCreated,
    SpawnRefused,
    SpawnRequested,
    StepEvent,
    StopRequested,
    WaitingEvent,
)
from domain.run.lifecycle import next_stage
from domain.run.preparation_steps import step_changes
from domain.run.state import Inbox, RecordedRefusal, Run
from domain.values.record import Stamp
from domain.values.refusals import CorruptHistoryError

# First events: a request for a new child, or a message to an existing one.


def initial_run(event: RunEvent, stamp: Stamp) -> Run:
    """Return the run after its first event.

    Raise `CorruptHistoryError` if it is not a first event.
    """
    match event:
        case SpawnRequested():
            return _run_of_spawn(event, stamp)
        case MessageReceived():
            return _run_of_message(event, stamp)
        case _:
            raise CorruptHistoryError(f"no run begins with {type(event).__name__}")


def _run_of_spawn(event: SpawnRequested, stamp: Stamp) -> Run:
    return Run(
        stage="requested",
        version=stamp.version,
        last_event_id=stamp.event_id,
        run_id=event.run_id,
        session_id=event.session_id,
        created_position=stamp.position,
        created_at=stamp.recorded_at,
        requester=event.requester,
        requested_agent_id=event.requested_agent_id,
        agent_id=event.requested_agent_id,
        label=event.label,
        task=event.task,
        preamble=event.preamble,
        model_argument=event.model_argument,
        thinking_argument=event.thinking_argument,
        attachments=event.attachments,
        shares=True if event.shared is not None else None,
        dependencies=event.dependencies or None,
        dependencies_argument=event.dependencies_argument,
        ancestors=event.ancestors or None,
        batch=event.batch,
        respawn=event.respawn,
        thread=event.facts.thread,
        options=event.options,
        config_revision=event.config_revision,
        holder=event.holder,
        epoch=stamp.version,
        depth=event.requester.depth + 1,
    )


def _run_of_message(event: MessageReceived, stamp: Stamp) -> Run:
    return Run(
        stage="requested",
        version=stamp.version,
        last_event_id=stamp.event_id,
        run_id=event.run_id,
        session_id=event.session_id,
        created_position=stamp.position,
        created_at=stamp.recorded_at,
        requester=event.requester,
        requested_agent_id=event.agent_id,
        agent_id=event.agent_id,
        label=event.label,
        task=event.message,
        model_argument=event.model_argument,
        thinking_argument=event.thinking_argument,
        thread=event.thread,
        kept_context_mode=event.context_mode,
        options=event.options,
        config_revision=event.config_revision,
        epoch=stamp.version,
        child_session_key=event.child_session_key,
        depth=event.depth,
        delivery_origin=event.delivery_origin,
        continues=event.continues,
        opened_by=event.opened_by,
        opened_at=event.opened_at,
        cause=event.cause if event.cause != "message" else None,
        queue=carried_queue(event),
        steered_by=event.by if event.cause == "steer" else None,
        steered_at=stamp.recorded_at if event.cause == "steer" else None,
    )


# Changes to a run that waits for dependencies.


def waiting_changes(run: Run, event: WaitingEvent) -> dict[str, object]:
    """Return the fields that a waiting event changes."""
    if isinstance(event, DependencyMet):
        left = tuple(run_id for run_id in run.waits_for or () if run_id != event.run_id)
        return {"waits_for": left or None}
    # Its preparation is done, and no other holder is needed yet.
    return {"holder": None, "waits_for": event.run_ids}


# Archiving.


def archive_due(run: Run, announced_at: datetime) -> datetime | None:
    """Return when to archive an announced run (UTC), or None if never.

    A closed session is archived at once, a continued run only with the run that continues it. In
    mode `session`, a stopped run is archived at once, another one when it reaches the idle limit or
    maximum age of its plan. In mode `run`, `cleanup: "delete"` archives at once; otherwise the run
    is archived `archive_after_minutes` after its end (0 disables archiving), but never before its
    announcement.
    """
    if run.put_away_from is not None:
        return announced_at
    if run.continued_by is not None:
        return None
    if run.options.mode == "session":
        return announced_at if run.outcome == "stopped" else _hours_due(run, announced_at)
    if run.cleanup == "delete":
        return announced_at
    if run.plan is None or run.plan.archive_after_minutes == 0 or run.ended_at is None:
        return None
    due = run.ended_at + timedelta(minutes=run.plan.archive_after_minutes)
    return max(due, announced_at)


def _hours_due(run: Run, announced_at: datetime) -> datetime | None:
    """Return when a session reaches its idle limit or its maximum age, whichever comes first."""
    if run.plan is None:
        return None
    idle, age = run.plan.idle_hours, run.plan.max_age_hours
    opened_at = run.opened_at or run.created_at
    ends = [announced_at + timedelta(hours=idle)] if idle else []
    ends += [opened_at + timedelta(hours=age)] if age else []
    return max(min(ends), announced_at) if ends else None


def evolve(run: Run | None, event: RunEvent, stamp: Stamp) -> Run:
    """Return the run after `event`.

    Raise `CorruptHistoryError` if the lifecycle has no such step.
    """
    stage = next_stage(run.stage if run else "unborn", event)
    if run is None:
        return initial_run(event, stamp)
    changes = _changes(run, event, stamp)
    if type(event) in EFFECT_TRIGGERS:
        changes.update(effects_after(run, event, stamp))
    changes["stage"] = stage
    changes["version"] = stamp.version
    changes["last_event_id"] = stamp.event_id
    return run.changed(changes)


def _changes(run: Run, event: RunEvent, stamp: Stamp) -> dict[str, object]:
    # The most frequent events come first, because every failed class check costs time.
    match event:
        case RunClaimed() | PreparationResumed():
            return {"holder": event.holder, "attempt": event.attempt, "epoch": stamp.version}
        case RunEnded():
            return _end_changes(run, event, stamp)
        case RunAnnounced():
            return _announcement_changes(run, event, stamp)
        case RunQueued():
            return _queue_changes(event, stamp)
        case RunStarted():
            return {
                "started_at": stamp.recorded_at,
                "system_prompt": event.system_prompt,
                "message": event.message,
            }
        case RunArchived():
            return {"archived_at": stamp.recorded_at, "transcript_path": event.transcript_path}
        case ScriptsResolved() | SpawnRequested():
            return {}
        case PreparationStarted():
            return {"child_session_key": event.child_session_key}
        case SessionCreated():
            return _creation_changes(event)
        case AnnouncementAcknowledged():
            return _acknowledge_changes(run, stamp)
        case SpawnRefused():
            return _refusal_changes(event, stamp)
        case StopRequested():
            return _stop_changes(run, event)
        case AgentOverridden():
            return {"agent_id": event.to_agent_id, "overridden": True}
        case DescendantsSettled():
            return {"pending_descendants": 0}
        case RunWaits() | DependencyMet():
            return waiting_changes(run, event)
        case _ if isinstance(event, EffectEvent):
            return effect_changes(run, event, stamp)
        case _ if isinstance(event, ContinuationEvent):
            return continuation_changes(run, event, stamp)
        case _ if isinstance(event, StepEvent):
            return step_changes(run, event, stamp)
        case _:
            assert_never(event)


def _stop_changes(run: Run, event: StopRequested) -> dict[str, object]:
    changes: dict[str, object] = {
        "stop_requested_by": event.by,
        "stop_by_requester": event.by_requester,
        "stop_reason": event.reason,
    }
    if run.stage == "ended":
        # The run was paused; now no run will continue its session.
        changes["outcome"] = "stopped"
    return changes


def _acknowledge_changes(run: Run, stamp: Stamp) -> dict[str, object]:
    if run.inbox is None:
        raise CorruptHistoryError("an announcement was acknowledged that was never made")
    return {"inbox": run.inbox.changed({"acknowledged_at": stamp.recorded_at})}


def _queue_changes(event: RunQueued, stamp: Stamp) -> dict[str, object]:
    return {
        "holder": None,
        "lane": event.lane,
        "lane_depth": event.lane_depth,
        "queued_position": stamp.position,
    }


def _creation_changes(event: SessionCreated) -> dict[str, object]:
    changes: dict[str, object] = {
        "child_session_key": event.child_session_key,
        "agent_id": event.agent_id,
        "depth": event.depth,
        "role": event.role,
        "control_scope": event.control_scope,
        "plan": event.plan,
        "warnings": event.warnings,
        "delivery_origin": event.delivery_origin,
    }
    if event.preamble is not None:
        changes["preamble_sizes"] = event.preamble
    if event.direct_delivery:
        changes["direct_delivery"] = True
    return changes


def _end_changes(run: Run, event: RunEnded, stamp: Stamp) -> dict[str, object]:
    changes: dict[str, object] = {
        "holder": None,
        "outcome": event.outcome,
        "end_reason": event.reason,
        "ended_at": stamp.recorded_at,
        "runtime_ms": _runtime_ms(run, event.alive_until or stamp.recorded_at),
        "result": event.result,
        "error": event.error,
        "usage": event.usage,
        "transcript": event.transcript,
        "transcript_path": event.transcript.path if event.transcript else None,
        "pending_descendants": event.pending_descendants,
    }
    if event.stopped_by is not None:
        changes["stop_requested_by"] = event.stopped_by
        changes["stop_by_requester"] = event.stopped_by_requester
    return changes


def _runtime_ms(run: Run, until: datetime) -> int | None:
    if run.started_at is None:
        return None
    return max(timedelta(0), until - run.started_at) // timedelta(milliseconds=1)


def _announcement_changes(run: Run, event: RunAnnounced, stamp: Stamp) -> dict[str, object]:
    return {
        "announced_at": stamp.recorded_at,
        "archive_at": archive_due(run, stamp.recorded_at),
        "inbox": Inbox(
            disposition=event.disposition,
            reason=event.reason,
            status=event.status,
            text=event.text,
            dedupe_key=event.dedupe_key,
            position=stamp.position,
            created_at=stamp.recorded_at,
            origin=event.origin,
        ),
    }


def _refusal_changes(event: SpawnRefused, stamp: Stamp) -> dict[str, object]:
    inbox = None
    if event.announcement is not None:
        inbox = Inbox(
            disposition="inbox",
            status="error",
            text=event.announcement,
            dedupe_key=event.dedupe_key or "",
            position=stamp.position,
            created_at=stamp.recorded_at,
        )
    return {
        "holder": None,
        "refusal": RecordedRefusal(
            rule=event.rule,
            status=event.status,
            step=event.step,
            text=event.text,
            inputs=event.inputs,
        ),
        "inbox": inbox,
    }

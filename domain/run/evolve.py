"""How events change a run. It only grows; it judges nothing."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import assert_never

from domain.run.archive_due import archive_due
from domain.run.births import initial_run
from domain.run.continuation_events import (
    ArchiveScheduled,
    ContinuationPlanned,
    MessageReceived,
    RunContinued,
)
from domain.run.events import (
    AgentOverridden,
    AnnouncementAcknowledged,
    DescendantsSettled,
    PreparationResumed,
    PreparationStarted,
    RunAnnounced,
    RunArchived,
    RunClaimed,
    RunEnded,
    RunEvent,
    RunQueued,
    RunStarted,
    ScriptsResolved,
    SessionCreated,
    StopRequested,
)
from domain.run.evolve_continuation import continuation_changes
from domain.run.evolve_hooks import hook_changes, hooks_due, initial_hook_states
from domain.run.evolve_steps import step_changes, undos_due
from domain.run.evolve_waiting import waiting_changes
from domain.run.hook_events import HookFailed, HookParked, HookTold
from domain.run.lifecycle import next_stage
from domain.run.request_events import SpawnRefused, SpawnRequested
from domain.run.state import Inbox, RecordedRefusal, Run
from domain.run.step_events import StepBegun, StepTaken, StepUndoFailed, StepUndone
from domain.run.waiting_events import DependencyMet, RunWaits
from domain.stamp import Stamp
from domain.values.refusals import CorruptHistory


def evolve(run: Run | None, event: RunEvent, stamp: Stamp) -> Run:
    """The run after `event`. `CorruptHistory` when the lifecycle has no such step."""
    return evolve_with_changes(run, event, stamp)[0]


def evolve_with_changes(
    run: Run | None, event: RunEvent, stamp: Stamp
) -> tuple[Run, Mapping[str, object]]:
    """The run after `event`, and the fields in which it differs from what it was before, with
    their values; none of a run that has just begun."""
    stage = next_stage(run.stage if run else "unborn", event)
    if run is None:
        return initial_run(event, stamp), {}
    changes = _changes(run, event, stamp)
    if run.steps:
        changes.update(undos_due(run, event, stamp))
    if run.hooks:
        changes.update(hooks_due(run.changed(changes), event, stamp))
    if "steps" in changes or "hooks" in changes:
        changes["effects_at"] = _effects_at(run.changed(changes))
    changes["stage"] = stage
    changes["version"] = stamp.version
    changes["last_event_id"] = stamp.event_id
    return run.changed(changes), changes


def _changes(run: Run, event: RunEvent, stamp: Stamp) -> dict[str, object]:
    # What happens most stands first: each class that an event is not takes its time.
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
        case MessageReceived() | ContinuationPlanned() | RunContinued() | ArchiveScheduled():
            return continuation_changes(run, event, stamp)
        case StopRequested():
            return {
                "stop_requested_by": event.by,
                "stop_by_requester": event.by_requester,
                "stop_reason": event.reason,
            }
        case HookTold() | HookFailed() | HookParked():
            return hook_changes(run, event, stamp)
        case StepBegun() | StepTaken() | StepUndone() | StepUndoFailed():
            return step_changes(run, event, stamp)
        case AgentOverridden():
            return {"agent_id": event.to_agent_id, "overridden": True}
        case DescendantsSettled():
            return {"pending_descendants": 0}
        case RunWaits() | DependencyMet():
            return waiting_changes(run, event)
        case _:
            assert_never(event)


def _acknowledge_changes(run: Run, stamp: Stamp) -> dict[str, object]:
    if run.inbox is None:
        raise CorruptHistory("an announcement was acknowledged that was never made")
    return {"inbox": run.inbox.changed({"acknowledged_at": stamp.recorded_at})}


def _effects_at(run: Run) -> datetime | None:
    undos = (one.undo_at for one in run.steps)
    hooks = (one.due_at for one in run.hooks)
    return min((at for at in (*undos, *hooks) if at is not None), default=None)


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
    if event.hooks:
        changes["hooks"] = initial_hook_states(event.hooks)
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
        "runtime_ms": _runtime_ms(run, stamp),
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


def _runtime_ms(run: Run, stamp: Stamp) -> int | None:
    if run.started_at is None:
        return None
    return (stamp.recorded_at - run.started_at) // timedelta(milliseconds=1)


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

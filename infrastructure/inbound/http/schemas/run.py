"""How a run reads."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from application.delivery.announce import estimated_cost_usd
from application.log.event_log import EventLog
from application.log.texts import Contents
from application.ports.registry import StatusRows
from domain.context.attachment_manifest import (
    FilesMismatch,
    attachments_receipt,
    parse_file_list,
    relative_dir,
    short_attachments_receipt,
)
from domain.run.events import StepUndoFailed
from domain.run.facts import StepState
from domain.run.lifecycle import PREPARING
from domain.run.state import Run
from domain.values.record import ContentRef
from infrastructure.inbound.http.schemas.dependencies import dependency_bodies, is_waiting

# How a run tells of what was made for its child outside the log.


FAILURES_AT_ONCE = 500


def attachment_list(run: Run) -> ContentRef | None:
    """The list of the files that were written; None when none ever were."""
    step = run.step("attachments")
    return step.manifest if step is not None else None


def attachments_body(run: Run, texts: Mapping[UUID, str]) -> dict[str, Any] | None:
    """The receipt of files that were written, and what has become of them; None when none were.
    The files are named when their list is among the texts."""
    step = run.step("attachments")
    if step is None or step.manifest is None:
        return None
    where, state = relative_dir(run.run_id), {"state": _state(step)}
    try:
        listed = parse_file_list(texts[step.manifest.id])
    except (KeyError, FilesMismatch):
        return short_attachments_receipt(where, step.file_count or 0, step.total_bytes or 0) | state
    return attachments_receipt(where, listed) | state


def pending_undo_body(run: Run) -> list[dict[str, Any]]:
    """The steps that are to be undone and are not yet: where that is, how often it failed, and when
    it is tried again. `error` is told by `tell_undo_errors`."""
    return [
        {
            "step": step.name,
            "root": step.root,
            "relative": step.relative,
            "failures": step.undo_failures,
            "nextAttemptAt": step.undo_at,
            "error": None,
        }
        for step in run.steps
        if step.undo_at is not None
    ]


async def add_undo_errors(
    bodies: Sequence[dict[str, Any]], run: Run, log: EventLog, contents: Contents
) -> None:
    """Put into bodies of `undoing_body` why the last attempt failed."""
    wanted = {(body["step"], body["failures"]): body for body in bodies if body["failures"]}
    after = 0
    while wanted:
        events = await log.read(
            after=after, limit=FAILURES_AT_ONCE, types=("StepUndoFailed",), run_id=run.run_id
        )
        for recorded in events:
            assert isinstance(recorded.event, StepUndoFailed)
            body = wanted.pop((recorded.event.step, recorded.event.attempt), None)
            if body is not None and recorded.event.error is not None:
                body["error"] = await contents.text(recorded.event.error)
        if len(events) < FAILURES_AT_ONCE:
            return
        after = events[-1].envelope.position


def _state(step: StepState) -> str:
    if step.phase == "undone":
        return "left_in_place" if step.undone == "left_in_place" else "removed"
    return "written" if step.undo_at is None else "removing"


_BY_OUTCOME = {
    "success": "done",
    "error": "failed",
    "timeout": "timeout",
    "stopped": "stopped",
    "unknown": "unknown",
}
ENDED_STAGES = ("ended", "announced", "archived")
ROWS_BY_STATUS: Mapping[str, StatusRows] = {
    "preparing": StatusRows(
        ("requested", "scripts-resolved", "overridden", "session-created"), waiting=False
    ),
    "waiting": StatusRows(("session-created",), waiting=True),
    "queued": StatusRows(("queued",)),
    "running": StatusRows(("started",)),
    "refused": StatusRows(("refused",)),
    **{status: StatusRows(ENDED_STAGES, outcome) for outcome, status in _BY_OUTCOME.items()},
}


"""By what the runs of each status are searched."""


def status_of(run: Run) -> str:
    """The status that follows from stage and outcome."""
    if is_waiting(run):
        return "waiting"
    if run.stage in PREPARING or run.stage == "session-created":
        return "preparing"
    if run.stage == "queued":
        return "queued"
    if run.stage == "started":
        return "running"
    if run.stage == "refused":
        return "refused"
    return _BY_OUTCOME[run.outcome or "unknown"]


async def run_bodies(
    runs: Sequence[Run], contents: Contents, *, full: bool
) -> list[dict[str, Any]]:
    """The bodies of runs: with all texts, or as summaries with previews."""
    refs = [ref for run in runs for ref in _texts(run, full=full)]
    texts = await (contents.texts(refs) if full else contents.previews(refs))
    return [_body(run, texts, full=full) for run in runs]


def _texts(run: Run, *, full: bool) -> list[ContentRef]:
    refs: list[ContentRef | None] = [run.task, run.error]
    if run.refusal is not None:
        refs.append(run.refusal.text)
    if full:
        refs += [run.result, run.requester.origin, attachment_list(run)]
    return [ref for ref in refs if ref is not None]


def _body(run: Run, texts: Mapping[UUID, str], *, full: bool) -> dict[str, Any]:
    body: dict[str, Any] = {
        "runId": run.run_id,
        "stage": run.stage,
        "status": status_of(run),
        "outcome": run.outcome,
        "agentId": run.agent_id,
        "requestedAgentId": run.requested_agent_id,
        "requesterSessionKey": run.requester.session_key,
        "childSessionKey": run.child_session_key,
        "sessionId": run.session_id,
        "controllerSessionKey": run.requester.session_key,
        "continues": run.continues,
        "respawnedFrom": None,
        "batchId": run.batch.batch_id if run.batch is not None else None,
        "label": run.label,
        **_task(run, texts, full=full),
        "depth": run.depth,
        "role": run.role,
        **_plan(run),
        "attachments": attachments_body(run, texts),
        "undoing": pending_undo_body(run),
        **_life(run),
        "error": _error(run, texts),
        "rule": run.refusal.rule if run.refusal else None,
        "usage": run.usage.model_dump() if run.usage else None,
        "estimatedCostUsd": estimated_cost_usd(run),
        "transcriptPath": run.transcript_path,
        "announcement": announcement_state(run),
        "dependsOn": dependency_bodies(run),
        "configRevision": run.config_revision,
        "version": run.version,
    }
    if full:
        body["resultText"] = _text(run.result, texts)
        body["requesterOrigin"] = _origin(run, texts)
        body["contextPreamble"] = _preamble(run)
    return body


def _preamble(run: Run) -> dict[str, int] | None:
    """How much of what its parent told it was handed over; None when it told nothing."""
    sizes = run.preamble_sizes
    if sizes is None:
        return None
    return {
        "givenCharacters": sizes.given_characters,
        "keptCharacters": sizes.kept_characters,
        "limit": sizes.characters_max,
    }


def _task(run: Run, texts: Mapping[UUID, str], *, full: bool) -> dict[str, Any]:
    text = texts.get(run.task.id)
    return {"task": text} if full else {"taskPreview": text, "taskBytes": run.task.bytes}


def _plan(run: Run) -> dict[str, Any]:
    plan = run.plan
    return {
        "modelProvider": plan.model_provider if plan else None,
        "model": plan.model if plan else None,
        "thinking": plan.thinking if plan else None,
        "runTimeoutSeconds": plan.run_timeout_seconds if plan else None,
        "mode": run.options.mode,
        "cleanup": run.cleanup,
        "contextMode": run.context_mode,
        "workspaceDir": plan.workspace_dir if plan else None,
        "sandboxed": plan.sandboxed if plan else None,
        "tools": {"allow": plan.tools_allow, "deny": plan.tools_deny} if plan else None,
        "warnings": run.warnings,
        "lane": run.lane,
    }


def _life(run: Run) -> dict[str, datetime | int | None]:
    return {
        "createdAt": run.created_at,
        "startedAt": run.started_at,
        "endedAt": run.ended_at,
        "announcedAt": run.announced_at,
        "archivedAt": run.archived_at,
        "archiveAt": run.archive_at,
        "runtimeMs": run.runtime_ms,
    }


def _error(run: Run, texts: Mapping[UUID, str]) -> str | None:
    if run.refusal is not None:
        return _text(run.refusal.text, texts)
    return _text(run.error, texts)


def _text(ref: ContentRef | None, texts: Mapping[UUID, str]) -> str | None:
    return texts.get(ref.id) if ref is not None else None


def _origin(run: Run, texts: Mapping[UUID, str]) -> Any:
    text = _text(run.requester.origin, texts)
    return orjson.loads(text) if text else None


def announcement_state(run: Run) -> dict[str, Any]:
    """What became of the announcement: `none`, `pending`, `delivered`, `acknowledged`, `skipped`
    or `not_required`."""
    inbox = run.inbox
    if inbox is None:
        state = "none" if run.outcome is None else "pending"
    elif inbox.disposition != "inbox":
        state = inbox.disposition
    else:
        state = "delivered" if inbox.acknowledged_at is None else "acknowledged"
    attempts = 1 if inbox is not None and inbox.disposition == "inbox" else 0
    return {
        "state": state,
        "reason": inbox.reason if inbox else None,
        "attempts": attempts,
        "lastError": None,
    }

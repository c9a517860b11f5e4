"""Runs: asking for them, and reading them and their records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from spawnlog.core.request import (
    PageRequest,
    Request,
    command_request,
    page_request,
    path_of,
    read_request,
)

if TYPE_CHECKING:
    from application.queries.changes.compare import RunComparisonView
    from application.queries.changes.diff import DiffItemView, DiffView
    from application.queries.changes.history import RunHistoryView, StateChangeView
    from application.queries.explain import ExplanationView
    from application.queries.views.event import EventView, EventWithTexts, RunEventListView
    from application.queries.views.run import (
        RecordedStage,
        RunListView,
        RunMetadataView,
        RunStatus,
        RunSummary,
        RunView,
    )
    from application.queries.views.run_records import (
        PromptView,
        TranscriptEntryView,
        TranscriptView,
    )
    from domain.run.facts import RunOutcome
    from infrastructure.inbound.http.schemas.answers import (
        AcceptedBatch,
        AcceptedBatchOfOne,
        AcceptedSpawn,
    )
    from spawnlog.operations.bodies import (
        AttachAsObject,
        AttachmentObject,
        DependencyObject,
        RequesterObject,
        TranscriptCutObject,
    )


def spawn(
    task: str | Sequence[str],
    requester: str | RequesterObject,
    *,
    label: str | None = None,
    agent_id: str | None = None,
    model: str | None = None,
    thinking: str | None = None,
    run_timeout_seconds: float | None = None,
    thread: bool | None = None,
    mode: Literal["run", "session"] | None = None,
    cleanup: Literal["delete", "keep"] | None = None,
    sandbox: Literal["inherit", "require"] | None = None,
    context: Literal["isolated", "fork"] | None = None,
    light_context: bool | None = None,
    expects_completion_message: bool | None = None,
    attachments: Sequence[AttachmentObject] | None = None,
    attach_as: AttachAsObject | None = None,
    context_preamble: str | None = None,
    shared_context: Mapping[str, Any] | None = None,
    shared_context_scope: Literal["family", "child"] | None = None,
    parallel: bool | None = None,
    depends_on: Sequence[str | DependencyObject] | None = None,
    chain_after: str | DependencyObject | None = None,
    idempotency_key: str | None = None,
) -> Request[AcceptedBatchOfOne | AcceptedSpawn | AcceptedBatch]:
    """Spawn a sub-agent."""
    return command_request(
        "spawn",
        "POST",
        path_of("spawns"),
        {
            "requester": {"sessionKey": requester} if isinstance(requester, str) else requester,
            "task": task,
            "label": label,
            "agentId": agent_id,
            "model": model,
            "thinking": thinking,
            "runTimeoutSeconds": run_timeout_seconds,
            "thread": thread,
            "mode": mode,
            "cleanup": cleanup,
            "sandbox": sandbox,
            "context": context,
            "lightContext": light_context,
            "expectsCompletionMessage": expects_completion_message,
            "attachments": attachments,
            "attachAs": attach_as,
            "contextPreamble": context_preamble,
            "sharedContext": shared_context,
            "sharedContextScope": shared_context_scope,
            "parallel": parallel,
            "dependsOn": depends_on,
            "chainAfter": chain_after,
        },
        "AcceptedBatchOfOne",
        "AcceptedSpawn",
        "AcceptedBatch",
        idempotency_key=idempotency_key,
    )


def respawn(
    run_id: str | UUID,
    *,
    changes: Mapping[str, Any] | None = None,
    scripts: Literal["again", "recorded"] | None = None,
    transcript: TranscriptCutObject | None = None,
    config_revision: int | None = None,
    idempotency_key: str | None = None,
) -> Request[AcceptedSpawn]:
    """Spawn anew from an earlier run."""
    return command_request(
        "respawn",
        "POST",
        path_of("runs", run_id, "respawn"),
        {
            "changes": changes,
            "scripts": scripts,
            "transcript": transcript,
            "configRevision": config_revision,
        },
        "AcceptedSpawn",
        idempotency_key=idempotency_key,
    )


def list_runs(
    *,
    at: str | datetime | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    order: Literal["asc", "desc"] | None = None,
    min_position: int | None = None,
    requester: str | None = None,
    tree: str | None = None,
    agent_id: Sequence[str] = (),
    label: Sequence[str] = (),
    stage: Sequence[RecordedStage] = (),
    status: Sequence[RunStatus] = (),
    outcome: Sequence[RunOutcome] = (),
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    rule: str | None = None,
    depth: int | None = None,
    label_prefix: str | None = None,
    respawned_from: str | UUID | None = None,
    q: str | None = None,
    totals: bool | None = None,
) -> PageRequest[RunListView, RunSummary]:
    """The registry."""
    return page_request(
        "listRuns",
        path_of("runs"),
        {
            "at": at,
            "limit": limit,
            "cursor": cursor,
            "order": order,
            "minPosition": min_position,
            "requester": requester,
            "tree": tree,
            "agentId": agent_id,
            "label": label,
            "stage": stage,
            "status": status,
            "outcome": outcome,
            "since": since,
            "until": until,
            "rule": rule,
            "depth": depth,
            "labelPrefix": label_prefix,
            "respawnedFrom": respawned_from,
            "q": q,
            "totals": totals,
        },
        "RunListView",
    )


def get_run(
    run_id: str | UUID,
    *,
    at: str | datetime | None = None,
    version: int | None = None,
    wait: float | None = None,
    until: Literal["started", "ended", "announced", "archived"] | None = None,
    min_position: int | None = None,
) -> Request[RunView | RunMetadataView]:
    """One run."""
    return read_request(
        "getRun",
        path_of("runs", run_id),
        {"at": at, "version": version, "wait": wait, "until": until, "minPosition": min_position},
        "RunView",
        "RunMetadataView",
    )


def list_run_events(
    run_id: str | UUID,
    *,
    after: int | None = None,
    limit: int | None = None,
    at: str | datetime | None = None,
    min_position: int | None = None,
) -> PageRequest[RunEventListView, EventWithTexts | EventView]:
    """The events of a run."""
    return page_request(
        "listRunEvents",
        path_of("runs", run_id, "events"),
        {"after": after, "limit": limit, "at": at, "minPosition": min_position},
        "RunEventListView",
    )


def get_run_prompt(
    run_id: str | UUID, *, at: str | datetime | None = None, min_position: int | None = None
) -> Request[PromptView]:
    """The prompt as the child got it."""
    return read_request(
        "getRunPrompt",
        path_of("runs", run_id, "prompt"),
        {"at": at, "minPosition": min_position},
        "PromptView",
    )


def get_run_transcript(
    run_id: str | UUID,
    *,
    after: int | None = None,
    limit: int | None = None,
    tools: bool | None = None,
    last: int | None = None,
    wait: float | None = None,
    at: str | datetime | None = None,
    min_position: int | None = None,
) -> PageRequest[TranscriptView, TranscriptEntryView]:
    """What the child said; with `wait` seconds, wait for an entry behind `after`."""
    return page_request(
        "getRunTranscript",
        path_of("runs", run_id, "transcript"),
        {
            "after": after,
            "limit": limit,
            "tools": tools,
            "last": last,
            "wait": wait,
            "at": at,
            "minPosition": min_position,
        },
        "TranscriptView",
    )


def explain_run(
    run_id: str | UUID, *, at: str | datetime | None = None, min_position: int | None = None
) -> Request[ExplanationView]:
    """How a spawn, or a message, was decided."""
    return read_request(
        "explainRun",
        path_of("runs", run_id, "explain"),
        {"at": at, "minPosition": min_position},
        "ExplanationView",
    )


def get_run_history(
    run_id: str | UUID,
    *,
    at: str | datetime | None = None,
    after: int | None = None,
    limit: int | None = None,
    field: Sequence[str] = (),
    min_position: int | None = None,
) -> PageRequest[RunHistoryView, StateChangeView]:
    """The states of a run one after the other."""
    return page_request(
        "getRunHistory",
        path_of("runs", run_id, "history"),
        {"at": at, "after": after, "limit": limit, "field": field, "minPosition": min_position},
        "RunHistoryView",
    )


def compare_runs(
    run_id: str | UUID,
    with_: str | UUID,
    *,
    at: str | datetime | None = None,
    min_position: int | None = None,
) -> Request[RunComparisonView]:
    """Two runs side by side."""
    return read_request(
        "compareRuns",
        path_of("runs", run_id, "compare"),
        {"with": with_, "at": at, "minPosition": min_position},
        "RunComparisonView",
    )


def get_diff(
    from_: str | datetime,
    to: str | datetime,
    *,
    run_id: str | UUID | None = None,
    session: str | None = None,
    tree: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    min_position: int | None = None,
) -> PageRequest[DiffView, DiffItemView]:
    """What changed between two moments."""
    return page_request(
        "getDiff",
        path_of("diff"),
        {
            "from": from_,
            "to": to,
            "runId": run_id,
            "session": session,
            "tree": tree,
            "limit": limit,
            "cursor": cursor,
            "minPosition": min_position,
        },
        "DiffView",
        lists=("added", "removed", "changed"),
    )

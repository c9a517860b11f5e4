# Written by `make client` from the description of the HTTP API.
"""Requests of every operation. `answer` of a client sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from spawnlog.core.request import (
    LinesRequest,
    PageRequest,
    Request,
    command_request,
    lines_request,
    page_request,
    path_of,
    plain_request,
    read_request,
    requester_object,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from spawnlog.bodies import (
        AttachAsBody,
        AttachmentBody,
        DependencyBody,
        EntryBody,
        RequesterBody,
        TranscriptChoice,
        UsageBody,
        WhatIfFilter,
    )
    from spawnlog.models import (
        AcceptedBatch,
        AcceptedBatchOfOne,
        AcceptedSpawn,
        AcknowledgedAnswer,
        AgentListing,
        AnnouncementView,
        BreakpointView,
        CallerView,
        ClaimedAnswer,
        ContinuedAnswer,
        DiffItemView,
        DiffView,
        EndedAnswer,
        EventListView,
        EventView,
        EventWithTexts,
        ExplanationView,
        FinishedAnswer,
        HealthAnswer,
        HeartbeatAnswer,
        HistogramView,
        InboxView,
        LaneListView,
        LogHeadView,
        MomentView,
        PageCodeAnswer,
        PageTokenAnswer,
        PreambleAnswer,
        PromptView,
        QueuedAnswer,
        ReadinessAnswer,
        RedrivenAnswer,
        ReportedAnswer,
        RevisionListView,
        RevisionSummary,
        RevisionView,
        RevokedAnswer,
        RunBarView,
        RunComparisonView,
        RunEventListView,
        RunHistoryView,
        RunListView,
        RunMetadataView,
        RunSharedContextView,
        RunSummary,
        RunView,
        SearchView,
        SessionStoppedAnswer,
        SessionTreeView,
        SessionView,
        SharedContextView,
        SharedSizesView,
        StateChangeView,
        SteeredAnswer,
        StoppedAnswer,
        TimelineView,
        TranscriptEntryView,
        TranscriptProvidedAnswer,
        TranscriptView,
        VerificationStartView,
        VerificationStopView,
        WhatIfFailureView,
        WhatIfProgressView,
        WhatIfTotalsView,
        WhatIfVerdictView,
        YieldedAnswer,
    )


def acknowledge_announcement(
    key: str, id: str, *, position: int | None = None, idempotency_key: str | None = None
) -> Request[AcknowledgedAnswer]:
    """Take an announcement."""
    return command_request(
        "acknowledgeAnnouncement",
        "POST",
        path_of("sessions", key, "announcements", id, "ack"),
        {"position": position},
        "AcknowledgedAnswer",
        idempotency_key=idempotency_key,
    )


def claim_run(
    run_id: str, executor: str, *, lease_seconds: float | None = None
) -> Request[ClaimedAnswer]:
    """Claim a run to execute it."""
    return plain_request(
        "claimRun",
        "POST",
        path_of("runs", run_id, "claim"),
        "ClaimedAnswer",
        body={"executor": executor, "leaseSeconds": lease_seconds},
        again=True,
    )


def clear_preamble(key: str) -> Request[PreambleAnswer]:
    """Take the preamble of a session away."""
    return plain_request(
        "clearPreamble", "DELETE", path_of("sessions", key, "preamble"), "PreambleAnswer"
    )


def compare_runs(
    run_id: str, with_: str, *, at: str | datetime | None = None, min_position: int | None = None
) -> Request[RunComparisonView]:
    """Two runs side by side."""
    return read_request(
        "compareRuns",
        path_of("runs", run_id, "compare"),
        {"with": with_, "at": at, "minPosition": min_position},
        "RunComparisonView",
    )


def count_events(
    *,
    actor: str | None = None,
    buckets: int | None = None,
    by: Literal["position", "time"] | None = None,
    from_: str | datetime | None = None,
    min_position: int | None = None,
    run_id: str | None = None,
    to: str | datetime | None = None,
    tree: str | None = None,
    types: Sequence[str] = (),
) -> Request[HistogramView]:
    """How much happened when."""
    return read_request(
        "countEvents",
        path_of("events", "histogram"),
        {
            "actor": actor,
            "buckets": buckets,
            "by": by,
            "from": from_,
            "minPosition": min_position,
            "runId": run_id,
            "to": to,
            "tree": tree,
            "types": types,
        },
        "HistogramView",
    )


def end_run(
    run_id: str,
    epoch: int,
    outcome: Literal["success", "error", "timeout", "stopped", "unknown"],
    *,
    result: str | None = None,
    error: str | None = None,
    usage: Sequence[UsageBody] | None = None,
) -> Request[EndedAnswer]:
    """Report the end of a run."""
    return plain_request(
        "endRun",
        "POST",
        path_of("runs", run_id, "end"),
        "EndedAnswer",
        body={"epoch": epoch, "outcome": outcome, "result": result, "error": error, "usage": usage},
        again=True,
    )


def explain_run(
    run_id: str, *, at: str | datetime | None = None, min_position: int | None = None
) -> Request[ExplanationView]:
    """How a spawn, or a message, was decided."""
    return read_request(
        "explainRun",
        path_of("runs", run_id, "explain"),
        {"at": at, "minPosition": min_position},
        "ExplanationView",
    )


def find_events(
    *,
    agent_id: str | None = None,
    becomes: str | None = None,
    changes: bool | None = None,
    cursor: str | None = None,
    field: str | None = None,
    from_: str | datetime | None = None,
    limit: int | None = None,
    min_position: int | None = None,
    rule: str | None = None,
    run_id: str | None = None,
    session: str | None = None,
    to: str | datetime | None = None,
    tree: str | None = None,
    types: Sequence[str] = (),
    when: str | None = None,
) -> PageRequest[SearchView, BreakpointView]:
    """Since when something is so."""
    return page_request(
        "findEvents",
        path_of("events", "find"),
        {
            "agentId": agent_id,
            "becomes": becomes,
            "changes": changes,
            "cursor": cursor,
            "field": field,
            "from": from_,
            "limit": limit,
            "minPosition": min_position,
            "rule": rule,
            "runId": run_id,
            "session": session,
            "to": to,
            "tree": tree,
            "types": types,
            "when": when,
        },
        "SearchView",
    )


def get_diff(
    from_: str | datetime,
    to: str | datetime,
    *,
    cursor: str | None = None,
    limit: int | None = None,
    min_position: int | None = None,
    run_id: str | None = None,
    session: str | None = None,
    tree: str | None = None,
) -> PageRequest[DiffView, DiffItemView]:
    """What changed between two moments."""
    return page_request(
        "getDiff",
        path_of("diff"),
        {
            "from": from_,
            "to": to,
            "cursor": cursor,
            "limit": limit,
            "minPosition": min_position,
            "runId": run_id,
            "session": session,
            "tree": tree,
        },
        "DiffView",
        lists=("added", "removed", "changed"),
    )


def get_health() -> Request[HealthAnswer]:
    """Alive."""
    return read_request("getHealth", "/healthz", {}, "HealthAnswer")


def get_log_head(
    *, at: str | datetime | None = None, min_position: int | None = None
) -> Request[LogHeadView]:
    """Where the log ends, and whether it was verified."""
    return read_request(
        "getLogHead", path_of("log"), {"at": at, "minPosition": min_position}, "LogHeadView"
    )


def get_me(*, min_position: int | None = None) -> Request[CallerView]:
    """What this token may do."""
    return read_request("getMe", path_of("me"), {"minPosition": min_position}, "CallerView")


def get_metrics() -> Request[str]:
    """Metrics."""
    return read_request("getMetrics", "/metrics", {}, "str")


def get_moment(
    *, around: int | None = None, at: str | datetime | None = None, min_position: int | None = None
) -> Request[MomentView]:
    """A moment of the log."""
    return read_request(
        "getMoment",
        path_of("moments"),
        {"around": around, "at": at, "minPosition": min_position},
        "MomentView",
    )


def get_readiness() -> Request[ReadinessAnswer]:
    """Ready."""
    return read_request("getReadiness", "/readyz", {}, "ReadinessAnswer")


def get_revision(
    revision: int, *, at: str | datetime | None = None, min_position: int | None = None
) -> Request[RevisionView]:
    """What a configuration said."""
    return read_request(
        "getRevision",
        path_of("config", "revisions", revision),
        {"at": at, "minPosition": min_position},
        "RevisionView",
    )


def get_run(
    run_id: str,
    *,
    at: str | datetime | None = None,
    min_position: int | None = None,
    until: Literal["started", "ended", "announced", "archived"] | None = None,
    version: int | None = None,
    wait: float | None = None,
) -> Request[RunView | RunMetadataView]:
    """One run."""
    return read_request(
        "getRun",
        path_of("runs", run_id),
        {"at": at, "minPosition": min_position, "until": until, "version": version, "wait": wait},
        "RunView",
        "RunMetadataView",
    )


def get_run_history(
    run_id: str,
    *,
    after: int | None = None,
    at: str | datetime | None = None,
    field: Sequence[str] = (),
    limit: int | None = None,
    min_position: int | None = None,
) -> PageRequest[RunHistoryView, StateChangeView]:
    """The states of a run one after the other."""
    return page_request(
        "getRunHistory",
        path_of("runs", run_id, "history"),
        {"after": after, "at": at, "field": field, "limit": limit, "minPosition": min_position},
        "RunHistoryView",
    )


def get_run_prompt(
    run_id: str, *, at: str | datetime | None = None, min_position: int | None = None
) -> Request[PromptView]:
    """The prompt as the child got it."""
    return read_request(
        "getRunPrompt",
        path_of("runs", run_id, "prompt"),
        {"at": at, "minPosition": min_position},
        "PromptView",
    )


def get_run_shared_context(
    run_id: str, *, at: str | datetime | None = None, min_position: int | None = None
) -> Request[RunSharedContextView]:
    """What a run was given of its family's context."""
    return read_request(
        "getRunSharedContext",
        path_of("runs", run_id, "shared-context"),
        {"at": at, "minPosition": min_position},
        "RunSharedContextView",
    )


def get_run_transcript(
    run_id: str,
    *,
    after: int | None = None,
    at: str | datetime | None = None,
    last: int | None = None,
    limit: int | None = None,
    min_position: int | None = None,
    tools: bool | None = None,
    wait: float | None = None,
) -> PageRequest[TranscriptView, TranscriptEntryView]:
    """What the child said."""
    return page_request(
        "getRunTranscript",
        path_of("runs", run_id, "transcript"),
        {
            "after": after,
            "at": at,
            "last": last,
            "limit": limit,
            "minPosition": min_position,
            "tools": tools,
            "wait": wait,
        },
        "TranscriptView",
    )


def get_session(
    key: str, *, at: str | datetime | None = None, min_position: int | None = None
) -> Request[SessionView]:
    """One session."""
    return read_request(
        "getSession",
        path_of("sessions", key),
        {"at": at, "minPosition": min_position},
        "SessionView",
    )


def get_session_tree(
    key: str,
    *,
    at: str | datetime | None = None,
    depth: int | None = None,
    limit: int | None = None,
    min_position: int | None = None,
) -> Request[SessionTreeView]:
    """A session and all below it."""
    return read_request(
        "getSessionTree",
        path_of("sessions", key, "tree"),
        {"at": at, "depth": depth, "limit": limit, "minPosition": min_position},
        "SessionTreeView",
    )


def get_shared_context(
    key: str, *, at: str | datetime | None = None, min_position: int | None = None
) -> Request[SharedContextView]:
    """What a session shares with its family."""
    return read_request(
        "getSharedContext",
        path_of("sessions", key, "shared-context"),
        {"at": at, "minPosition": min_position},
        "SharedContextView",
    )


def list_agents(
    *,
    at: str | datetime | None = None,
    min_position: int | None = None,
    requester: str | None = None,
) -> Request[AgentListing]:
    """The agents a requester may spawn."""
    return read_request(
        "listAgents",
        path_of("agents"),
        {"at": at, "minPosition": min_position, "requester": requester},
        "AgentListing",
    )


def list_announcements(
    key: str,
    *,
    after: int | None = None,
    at: str | datetime | None = None,
    limit: int | None = None,
    min_position: int | None = None,
    wait: float | None = None,
) -> PageRequest[InboxView, AnnouncementView]:
    """A session's inbox."""
    return page_request(
        "listAnnouncements",
        path_of("sessions", key, "announcements"),
        {"after": after, "at": at, "limit": limit, "minPosition": min_position, "wait": wait},
        "InboxView",
    )


def list_events(
    *,
    actor: str | None = None,
    after: int | None = None,
    at: str | datetime | None = None,
    before: int | None = None,
    limit: int | None = None,
    min_position: int | None = None,
    order: Literal["asc", "desc"] | None = None,
    run_id: str | None = None,
    tree: str | None = None,
    types: Sequence[str] = (),
) -> PageRequest[EventListView, EventView]:
    """The log."""
    return page_request(
        "listEvents",
        path_of("events"),
        {
            "actor": actor,
            "after": after,
            "at": at,
            "before": before,
            "limit": limit,
            "minPosition": min_position,
            "order": order,
            "runId": run_id,
            "tree": tree,
            "types": types,
        },
        "EventListView",
    )


def list_lanes(
    *, at: str | datetime | None = None, limit: int | None = None, min_position: int | None = None
) -> Request[LaneListView]:
    """The lanes."""
    return read_request(
        "listLanes",
        path_of("lanes"),
        {"at": at, "limit": limit, "minPosition": min_position},
        "LaneListView",
    )


def list_ledger(
    *,
    after: int | None = None,
    at: str | datetime | None = None,
    limit: int | None = None,
    min_position: int | None = None,
    state: Literal["parked", "due", "delivered", "acknowledged"] | None = None,
) -> PageRequest[InboxView, AnnouncementView]:
    """The ledger of announcements."""
    return page_request(
        "listLedger",
        path_of("announcements"),
        {"after": after, "at": at, "limit": limit, "minPosition": min_position, "state": state},
        "InboxView",
    )


def list_revisions(
    *,
    at: str | datetime | None = None,
    cursor: str | None = None,
    limit: int | None = None,
    min_position: int | None = None,
) -> PageRequest[RevisionListView, RevisionSummary]:
    """Which configuration was active when."""
    return page_request(
        "listRevisions",
        path_of("config", "revisions"),
        {"at": at, "cursor": cursor, "limit": limit, "minPosition": min_position},
        "RevisionListView",
    )


def list_run_events(
    run_id: str,
    *,
    after: int | None = None,
    at: str | datetime | None = None,
    limit: int | None = None,
    min_position: int | None = None,
) -> PageRequest[RunEventListView, EventWithTexts | EventView]:
    """The events of a run."""
    return page_request(
        "listRunEvents",
        path_of("runs", run_id, "events"),
        {"after": after, "at": at, "limit": limit, "minPosition": min_position},
        "RunEventListView",
    )


def list_runs(
    *,
    agent_id: Sequence[str] = (),
    at: str | datetime | None = None,
    cursor: str | None = None,
    depth: int | None = None,
    label: Sequence[str] = (),
    label_prefix: str | None = None,
    limit: int | None = None,
    min_position: int | None = None,
    order: Literal["asc", "desc"] | None = None,
    outcome: Sequence[Literal["success", "error", "timeout", "stopped", "unknown"]] = (),
    q: str | None = None,
    requester: str | None = None,
    respawned_from: str | None = None,
    rule: str | None = None,
    since: str | datetime | None = None,
    stage: Sequence[
        Literal[
            "requested",
            "scripts-resolved",
            "overridden",
            "session-created",
            "queued",
            "started",
            "ended",
            "announced",
            "archived",
            "refused",
        ]
    ] = (),
    status: Sequence[
        Literal[
            "preparing",
            "waiting",
            "queued",
            "running",
            "done",
            "failed",
            "timeout",
            "stopped",
            "unknown",
            "refused",
        ]
    ] = (),
    totals: bool | None = None,
    tree: str | None = None,
    until: str | datetime | None = None,
) -> PageRequest[RunListView, RunSummary]:
    """The registry."""
    return page_request(
        "listRuns",
        path_of("runs"),
        {
            "agentId": agent_id,
            "at": at,
            "cursor": cursor,
            "depth": depth,
            "label": label,
            "labelPrefix": label_prefix,
            "limit": limit,
            "minPosition": min_position,
            "order": order,
            "outcome": outcome,
            "q": q,
            "requester": requester,
            "respawnedFrom": respawned_from,
            "rule": rule,
            "since": since,
            "stage": stage,
            "status": status,
            "totals": totals,
            "tree": tree,
            "until": until,
        },
        "RunListView",
    )


def list_timeline(
    *,
    agent_id: Sequence[str] = (),
    at: str | datetime | None = None,
    buckets: int | None = None,
    cursor: str | None = None,
    depth: int | None = None,
    from_: str | datetime | None = None,
    label: Sequence[str] = (),
    label_prefix: str | None = None,
    limit: int | None = None,
    min_position: int | None = None,
    outcome: Sequence[Literal["success", "error", "timeout", "stopped", "unknown"]] = (),
    requester: str | None = None,
    respawned_from: str | None = None,
    rule: str | None = None,
    since: str | datetime | None = None,
    stage: Sequence[
        Literal[
            "requested",
            "scripts-resolved",
            "overridden",
            "session-created",
            "queued",
            "started",
            "ended",
            "announced",
            "archived",
            "refused",
        ]
    ] = (),
    status: Sequence[
        Literal[
            "preparing",
            "waiting",
            "queued",
            "running",
            "done",
            "failed",
            "timeout",
            "stopped",
            "unknown",
            "refused",
        ]
    ] = (),
    to: str | datetime | None = None,
    tree: str | None = None,
    until: str | datetime | None = None,
) -> PageRequest[TimelineView, RunBarView]:
    """Runs as bars."""
    return page_request(
        "listTimeline",
        path_of("timeline"),
        {
            "agentId": agent_id,
            "at": at,
            "buckets": buckets,
            "cursor": cursor,
            "depth": depth,
            "from": from_,
            "label": label,
            "labelPrefix": label_prefix,
            "limit": limit,
            "minPosition": min_position,
            "outcome": outcome,
            "requester": requester,
            "respawnedFrom": respawned_from,
            "rule": rule,
            "since": since,
            "stage": stage,
            "status": status,
            "to": to,
            "tree": tree,
            "until": until,
        },
        "TimelineView",
    )


def make_page_code() -> Request[PageCodeAnswer]:
    """Make a code that signs in to the page."""
    return plain_request(
        "makePageCode", "POST", path_of("page-codes"), "PageCodeAnswer", again=True
    )


def patch_shared_context(
    key: str, changes: Mapping[str, Any], *, if_match: str = "*"
) -> Request[SharedContextView | SharedSizesView]:
    """Write into what a session shares."""
    return plain_request(
        "patchSharedContext",
        "PATCH",
        path_of("sessions", key, "shared-context"),
        "SharedContextView",
        "SharedSizesView",
        body=changes,
        headers={"If-Match": if_match},
    )


def prolong_claim(
    run_id: str, epoch: int, *, lease_seconds: float | None = None
) -> Request[HeartbeatAnswer]:
    """Prolong a claim."""
    return plain_request(
        "prolongClaim",
        "POST",
        path_of("runs", run_id, "heartbeat"),
        "HeartbeatAnswer",
        body={"epoch": epoch, "leaseSeconds": lease_seconds},
        again=True,
    )


def provide_transcript(
    key: str,
    entries: Sequence[EntryBody],
    *,
    total_tokens: int | None = None,
    idempotency_key: str | None = None,
) -> Request[TranscriptProvidedAnswer]:
    """Tell what was said in a session."""
    return command_request(
        "provideTranscript",
        "PUT",
        path_of("sessions", key, "transcript"),
        {"entries": entries, "totalTokens": total_tokens},
        "TranscriptProvidedAnswer",
        idempotency_key=idempotency_key,
    )


def redrive_announcement(
    id: str, reason: str, *, webhook: str | None = None, idempotency_key: str | None = None
) -> Request[RedrivenAnswer]:
    """Send a parked announcement again."""
    return command_request(
        "redriveAnnouncement",
        "POST",
        path_of("announcements", id, "redrive"),
        {"reason": reason, "webhook": webhook},
        "RedrivenAnswer",
        idempotency_key=idempotency_key,
    )


def report_transcript(
    run_id: str, epoch: int, first: int, entries: Sequence[EntryBody]
) -> Request[ReportedAnswer]:
    """Report what the child said."""
    return plain_request(
        "reportTranscript",
        "POST",
        path_of("runs", run_id, "transcript"),
        "ReportedAnswer",
        body={"epoch": epoch, "first": first, "entries": entries},
        again=True,
    )


def respawn(
    run_id: str,
    *,
    changes: Mapping[str, Any] | None = None,
    scripts: Literal["again", "recorded"] | None = None,
    transcript: TranscriptChoice | None = None,
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


def revoke_page_token() -> Request[RevokedAnswer]:
    """Revoke a token of the page."""
    return plain_request(
        "revokePageToken", "DELETE", path_of("page-tokens", "current"), "RevokedAnswer"
    )


def send_message(
    run_id: str,
    message: str,
    *,
    mode: Literal["send", "steer"] | None = None,
    idempotency_key: str | None = None,
) -> Request[FinishedAnswer | ContinuedAnswer | QueuedAnswer | SteeredAnswer]:
    """Go on with a session."""
    return command_request(
        "sendMessage",
        "POST",
        path_of("runs", run_id, "messages"),
        {"message": message, "mode": mode},
        "FinishedAnswer",
        "ContinuedAnswer",
        "QueuedAnswer",
        "SteeredAnswer",
        idempotency_key=idempotency_key,
    )


def spawn(
    task: str | Sequence[str],
    requester: str | RequesterBody,
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
    attachments: Sequence[AttachmentBody] | None = None,
    attach_as: AttachAsBody | None = None,
    context_preamble: str | None = None,
    shared_context: Mapping[str, Any] | None = None,
    shared_context_scope: Literal["family", "child"] | None = None,
    parallel: bool | None = None,
    depends_on: Sequence[str | DependencyBody] | None = None,
    chain_after: str | DependencyBody | None = None,
    idempotency_key: str | None = None,
) -> Request[AcceptedBatchOfOne | AcceptedSpawn | AcceptedBatch]:
    """Spawn a sub-agent."""
    return command_request(
        "spawn",
        "POST",
        path_of("spawns"),
        {
            "task": task,
            "requester": requester_object(requester),
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


def start_verification() -> Request[VerificationStartView]:
    """Verify the log."""
    return plain_request(
        "startVerification",
        "POST",
        path_of("log", "verifications"),
        "VerificationStartView",
        again=True,
    )


def stop_run(
    run_id: str, *, reason: str | None = None, idempotency_key: str | None = None
) -> Request[StoppedAnswer]:
    """Stop a run and its descendants."""
    return command_request(
        "stopRun",
        "POST",
        path_of("runs", run_id, "stop"),
        {"reason": reason},
        "StoppedAnswer",
        idempotency_key=idempotency_key,
    )


def stop_session(
    key: str, *, reason: str | None = None, idempotency_key: str | None = None
) -> Request[SessionStoppedAnswer]:
    """Stop a session's run and all below it."""
    return command_request(
        "stopSession",
        "POST",
        path_of("sessions", key, "stop"),
        {"reason": reason},
        "SessionStoppedAnswer",
        idempotency_key=idempotency_key,
    )


def stop_verification() -> Request[VerificationStopView]:
    """Stop verifying the log."""
    return plain_request(
        "stopVerification",
        "POST",
        path_of("log", "verifications", "current", "stop"),
        "VerificationStopView",
        again=True,
    )


def trade_page_code(code: str) -> Request[PageTokenAnswer]:
    """Trade a code for a token of the page."""
    return plain_request(
        "tradePageCode", "POST", path_of("page-tokens"), "PageTokenAnswer", body={"code": code}
    )


def what_if(
    *,
    config: Mapping[str, Any] | None = None,
    config_text: str | None = None,
    config_name: str | None = None,
    patch: Sequence[Mapping[str, Any]] | None = None,
    from_: str | datetime | None = None,
    to: str | datetime | None = None,
    filter: WhatIfFilter | None = None,
    only: Sequence[
        Literal[
            "same",
            "newly-refused",
            "newly-allowed",
            "different-agent",
            "different-model",
            "different-plan",
            "different-context",
            "different-announcement",
            "not-replayable",
        ]
    ]
    | None = None,
    cascade: bool | None = None,
    prompts: bool | None = None,
) -> LinesRequest[WhatIfVerdictView | WhatIfProgressView | WhatIfTotalsView | WhatIfFailureView]:
    """What another configuration would have decided."""
    return lines_request(
        "whatIf",
        path_of("what-if"),
        {
            "config": config,
            "configText": config_text,
            "configName": config_name,
            "patch": patch,
            "from": from_,
            "to": to,
            "filter": filter,
            "only": only,
            "cascade": cascade,
            "prompts": prompts,
        },
        "WhatIfVerdictView",
        "WhatIfProgressView",
        "WhatIfTotalsView",
        "WhatIfFailureView",
    )


def write_preamble(
    key: str, preamble: str, *, idempotency_key: str | None = None
) -> Request[PreambleAnswer]:
    """Change the preamble of a session."""
    return command_request(
        "writePreamble",
        "PUT",
        path_of("sessions", key, "preamble"),
        {"preamble": preamble},
        "PreambleAnswer",
        idempotency_key=idempotency_key,
    )


def yield_session(
    key: str, *, message: str | None = None, idempotency_key: str | None = None
) -> Request[YieldedAnswer]:
    """End a turn and wait for sub-agents."""
    return command_request(
        "yieldSession",
        "POST",
        path_of("sessions", key, "yield"),
        {"message": message},
        "YieldedAnswer",
        idempotency_key=idempotency_key,
    )

"""The log: its events, counts and moments, what is searched and asked in it, its verification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from spawnlog.core.request import (
    LinesRequest,
    PageRequest,
    Request,
    page_request,
    path_of,
    read_request,
    sent_body,
    sent_query,
)

if TYPE_CHECKING:
    from application.queries.search.find import BreakpointView, SearchView
    from application.queries.timeline.bars import RunBarView, TimelineView
    from application.queries.timeline.histogram import HistogramView
    from application.queries.timeline.moments import MomentView
    from application.queries.views.event import EventListView, EventView
    from application.queries.views.run import RecordedStage, RunStatus
    from application.queries.views.verification import (
        LogHeadView,
        VerificationStartView,
        VerificationStopView,
    )
    from application.queries.views.what_if import WhatIfLine
    from domain.run.facts import RunOutcome
    from domain.what_if.verdict import VerdictName
    from spawnlog.operations.bodies import DecisionFilterObject


def list_events(
    *,
    after: int | None = None,
    limit: int | None = None,
    types: Sequence[str] = (),
    run_id: str | UUID | None = None,
    tree: str | None = None,
    actor: str | None = None,
    before: int | None = None,
    order: Literal["asc", "desc"] | None = None,
    at: str | datetime | None = None,
    min_position: int | None = None,
) -> PageRequest[EventListView, EventView]:
    """The log."""
    return page_request(
        "listEvents",
        path_of("events"),
        {
            "after": after,
            "limit": limit,
            "types": types,
            "runId": run_id,
            "tree": tree,
            "actor": actor,
            "before": before,
            "order": order,
            "at": at,
            "minPosition": min_position,
        },
        "EventListView",
    )


def stream_events(
    *,
    after: int | None = None,
    types: Sequence[str] = (),
    run_id: str | UUID | None = None,
    tree: str | None = None,
    actor: str | None = None,
) -> Request[EventView]:
    """The log as it grows, behind `after`, else from now on: the same operation as `list_events`,
    answered as a stream."""
    return Request(
        operation="listEvents",
        method="GET",
        path=path_of("events"),
        query=sent_query(
            {"after": after, "types": types, "runId": run_id, "tree": tree, "actor": actor}
        ),
        headers={"Accept": "text/event-stream"},
        answers=("EventView",),
        again=True,
    )


def what_if(
    *,
    config: Mapping[str, Any] | None = None,
    config_text: str | None = None,
    config_name: str | None = None,
    patch: Sequence[Mapping[str, Any]] | None = None,
    from_: str | datetime | None = None,
    to: str | datetime | None = None,
    filter: DecisionFilterObject | None = None,
    only: Sequence[VerdictName] | None = None,
    cascade: bool | None = None,
    prompts: bool | None = None,
) -> LinesRequest[WhatIfLine]:
    """What another configuration would have decided."""
    return LinesRequest(
        operation="whatIf",
        method="POST",
        path=path_of("what-if"),
        content=sent_body(
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
        ),
        headers={"Content-Type": "application/json", "Accept": "application/x-ndjson"},
        answers=(
            "WhatIfVerdictView",
            "WhatIfProgressView",
            "WhatIfTotalsView",
            "WhatIfFailureView",
        ),
        again=True,
    )


def count_events(
    *,
    buckets: int | None = None,
    by: Literal["position", "time"] | None = None,
    from_: str | datetime | None = None,
    to: str | datetime | None = None,
    types: Sequence[str] = (),
    run_id: str | UUID | None = None,
    tree: str | None = None,
    actor: str | None = None,
    min_position: int | None = None,
) -> Request[HistogramView]:
    """How much happened when."""
    return read_request(
        "countEvents",
        path_of("events", "histogram"),
        {
            "buckets": buckets,
            "by": by,
            "from": from_,
            "to": to,
            "types": types,
            "runId": run_id,
            "tree": tree,
            "actor": actor,
            "minPosition": min_position,
        },
        "HistogramView",
    )


def list_timeline(
    *,
    from_: str | datetime | None = None,
    to: str | datetime | None = None,
    at: str | datetime | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    buckets: int | None = None,
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
) -> PageRequest[TimelineView, RunBarView]:
    """Runs as bars."""
    return page_request(
        "listTimeline",
        path_of("timeline"),
        {
            "from": from_,
            "to": to,
            "at": at,
            "limit": limit,
            "cursor": cursor,
            "buckets": buckets,
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
        },
        "TimelineView",
    )


def get_moment(
    *, at: str | datetime | None = None, around: int | None = None, min_position: int | None = None
) -> Request[MomentView]:
    """A moment of the log."""
    return read_request(
        "getMoment",
        path_of("moments"),
        {"at": at, "around": around, "minPosition": min_position},
        "MomentView",
    )


def find_events(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    min_position: int | None = None,
    when: str | None = None,
    field: str | None = None,
    becomes: str | None = None,
    changes: bool | None = None,
    types: Sequence[str] = (),
    rule: str | None = None,
    run_id: str | UUID | None = None,
    session: str | None = None,
    tree: str | None = None,
    agent_id: str | None = None,
    from_: str | datetime | None = None,
    to: str | datetime | None = None,
) -> PageRequest[SearchView, BreakpointView]:
    """Since when something is so."""
    return page_request(
        "findEvents",
        path_of("events", "find"),
        {
            "limit": limit,
            "cursor": cursor,
            "minPosition": min_position,
            "when": when,
            "field": field,
            "becomes": becomes,
            "changes": changes,
            "types": types,
            "rule": rule,
            "runId": run_id,
            "session": session,
            "tree": tree,
            "agentId": agent_id,
            "from": from_,
            "to": to,
        },
        "SearchView",
    )


def get_log_head(
    *, at: str | datetime | None = None, min_position: int | None = None
) -> Request[LogHeadView]:
    """Where the log ends, and whether it was verified."""
    return read_request(
        "getLogHead", path_of("log"), {"at": at, "minPosition": min_position}, "LogHeadView"
    )


def start_verification() -> Request[VerificationStartView]:
    """Verify the log."""
    return Request(
        operation="startVerification",
        method="POST",
        path=path_of("log", "verifications"),
        answers=("VerificationStartView",),
        again=True,
    )


def stop_verification() -> Request[VerificationStopView]:
    """Stop verifying the log."""
    return Request(
        operation="stopVerification",
        method="POST",
        path=path_of("log", "verifications", "current", "stop"),
        answers=("VerificationStopView",),
        again=True,
    )

"""The server: its agents, lanes and configuration, who asks, and whether it answers."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from spawnlog.core.request import (
    TEXT,
    PageRequest,
    Request,
    page_request,
    path_of,
    read_request,
    sent_body,
)

if TYPE_CHECKING:
    from application.queries.access import CallerView
    from application.queries.agents import AgentListing
    from application.queries.lanes import LaneListView
    from application.queries.revisions import RevisionListView, RevisionSummary, RevisionView
    from infrastructure.inbound.http.schemas.answers import (
        HealthAnswer,
        PageCodeAnswer,
        PageTokenAnswer,
        ReadinessAnswer,
        RevokedAnswer,
    )


def list_agents(
    *,
    requester: str | None = None,
    at: str | datetime | None = None,
    min_position: int | None = None,
) -> Request[AgentListing]:
    """The agents a requester may spawn."""
    return read_request(
        "listAgents",
        path_of("agents"),
        {"requester": requester, "at": at, "minPosition": min_position},
        "AgentListing",
    )


def list_lanes(
    *, limit: int | None = None, at: str | datetime | None = None, min_position: int | None = None
) -> Request[LaneListView]:
    """The lanes."""
    return read_request(
        "listLanes",
        path_of("lanes"),
        {"limit": limit, "at": at, "minPosition": min_position},
        "LaneListView",
    )


def list_revisions(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    at: str | datetime | None = None,
    min_position: int | None = None,
) -> PageRequest[RevisionListView, RevisionSummary]:
    """Which configuration was active when."""
    return page_request(
        "listRevisions",
        path_of("config", "revisions"),
        {"limit": limit, "cursor": cursor, "at": at, "minPosition": min_position},
        "RevisionListView",
    )


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


def get_me(*, min_position: int | None = None) -> Request[CallerView]:
    """What this token may do."""
    return read_request("getMe", path_of("me"), {"minPosition": min_position}, "CallerView")


def make_page_code() -> Request[PageCodeAnswer]:
    """Make a code that signs in to the page."""
    return Request(
        operation="makePageCode",
        method="POST",
        path=path_of("page-codes"),
        answers=("PageCodeAnswer",),
        again=True,
    )


def trade_page_code(code: str) -> Request[PageTokenAnswer]:
    """Trade a code for a token of the page. It is sent once only."""
    return Request(
        operation="tradePageCode",
        method="POST",
        path=path_of("page-tokens"),
        content=sent_body({"code": code}),
        headers={"Content-Type": "application/json"},
        answers=("PageTokenAnswer",),
    )


def revoke_page_token() -> Request[RevokedAnswer]:
    """Revoke a token of the page: the one that this client has."""
    return Request(
        operation="revokePageToken",
        method="DELETE",
        path=path_of("page-tokens", "current"),
        answers=("RevokedAnswer",),
    )


def get_health() -> Request[HealthAnswer]:
    """Alive."""
    return read_request("getHealth", "/healthz", {}, "HealthAnswer")


def get_metrics() -> Request[str]:
    """What the server has counted, in the text format of Prometheus."""
    return read_request("getMetrics", "/metrics", {}, TEXT)


def get_readiness() -> Request[ReadinessAnswer]:
    """Ready."""
    return read_request("getReadiness", "/readyz", {}, "ReadinessAnswer")

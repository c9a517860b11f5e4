"""What runs can be asked for by."""

from typing import Annotated, Literal

from fastapi import Query
from pydantic import Field

from application.ports.registry import RunQuery
from infrastructure.inbound.http.requests.as_of import instant_of
from infrastructure.inbound.http.schemas.run import ROWS_BY_STATUS

TEXT_CHARS_MAX = 2048
CURSOR_CHARS_MAX = 1024

StageFilter = Literal[
    "requested", "scripts-resolved", "overridden", "session-created", "queued", "started",
    "ended", "announced", "archived", "refused",
]  # fmt: skip
StatusFilter = Literal[
    "preparing", "waiting", "queued", "running", "done", "failed", "timeout", "stopped",
    "unknown", "refused",
]  # fmt: skip
OutcomeFilter = Literal["success", "error", "timeout", "stopped", "unknown"]

ByRequester = Annotated[
    str | None,
    Query(
        max_length=TEXT_CHARS_MAX,
        description="Spawned by this session: its key in any spelling, its id, or `current`.",
    ),
]
ByTree = Annotated[
    str | None,
    Query(
        max_length=TEXT_CHARS_MAX,
        description="In the tree below this root session: a key, a session id, or `current`.",
    ),
]
ByAgent = Annotated[
    tuple[Annotated[str, Field(max_length=64)], ...],
    Query(alias="agentId", description="Of this agent, after any override; of any of several."),
]
ByLabel = Annotated[
    tuple[Annotated[str, Field(max_length=TEXT_CHARS_MAX)], ...],
    Query(alias="label", description="With exactly this label, or any of several."),
]
ByStage = Annotated[
    tuple[StageFilter, ...], Query(alias="stage", description="At this stage, or any of several.")
]
ByStatus = Annotated[
    tuple[StatusFilter, ...],
    Query(alias="status", description="With this status, or any of several."),
]
ByOutcome = Annotated[
    tuple[OutcomeFilter, ...],
    Query(alias="outcome", description="Ended like this, or like any of several."),
]
CreatedSince = Annotated[
    str | None, Query(max_length=64, description="Created at this RFC 3339 instant or later.")
]
CreatedBefore = Annotated[
    str | None, Query(max_length=64, description="Created before this RFC 3339 instant.")
]
ByCursor = Annotated[
    str | None,
    Query(max_length=CURSOR_CHARS_MAX, description="`nextCursor` of the page before this one."),
]
SortOrder = Annotated[Literal["asc", "desc"], Query(description="By creation.")]


def run_query(
    requester: str | None,
    tree: str | None,
    agent_ids: tuple[str, ...],
    labels: tuple[str, ...],
    stages: tuple[str, ...],
    statuses: tuple[str, ...],
    outcomes: tuple[str, ...],
    since: str | None,
    until: str | None,
) -> RunQuery:
    """The question in the words of the registry; keys are canonical, and several values of one
    filter mean any of them. 422 for what is no instant."""
    return RunQuery(
        requester=requester,
        tree=tree,
        agent_ids=_distinct(agent_ids),
        labels=_distinct(labels),
        stages=_distinct(stages),
        outcomes=_distinct(outcomes),
        statuses=tuple(ROWS_BY_STATUS[one] for one in _distinct(statuses) or ()) or None,
        since=instant_of(since, "since") if since else None,
        until=instant_of(until, "until") if until else None,
    )


def _distinct(values: tuple[str, ...]) -> tuple[str, ...] | None:
    """In an order that is not the caller's: the same question has the same cursor."""
    return tuple(sorted(set(values))) or None

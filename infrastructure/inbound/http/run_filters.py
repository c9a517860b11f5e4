"""What runs can be asked for by."""

from typing import Annotated, Literal

from fastapi import Query

from application.ports.registry import RunQuery
from infrastructure.inbound.http.moments import instant_of
from infrastructure.inbound.http.run_bodies import WAITING_BY_STATUS, stages_and_outcome

TEXT_CHARS_MAX = 2048
CURSOR_CHARS_MAX = 1024

Stage = Literal[
    "requested", "scripts-resolved", "overridden", "session-created", "queued", "started",
    "ended", "announced", "archived", "refused",
]  # fmt: skip
Status = Literal[
    "preparing", "waiting", "queued", "running", "done", "failed", "timeout", "stopped",
    "unknown", "refused",
]  # fmt: skip
Outcome = Literal["success", "error", "timeout", "stopped", "unknown"]

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
    str | None,
    Query(alias="agentId", max_length=64, description="Of this agent, after any override."),
]
ByLabel = Annotated[
    str | None, Query(max_length=TEXT_CHARS_MAX, description="With exactly this label.")
]
ByStage = Annotated[Stage | None, Query(description="At this stage.")]
ByStatus = Annotated[Status | None, Query(description="With this status.")]
ByOutcome = Annotated[Outcome | None, Query(description="Ended like this.")]
Since = Annotated[
    str | None, Query(max_length=64, description="Created at this RFC 3339 instant or later.")
]
Until = Annotated[
    str | None, Query(max_length=64, description="Created before this RFC 3339 instant.")
]
ByCursor = Annotated[
    str | None,
    Query(max_length=CURSOR_CHARS_MAX, description="`nextCursor` of the page before this one."),
]
Order = Annotated[Literal["asc", "desc"], Query(description="By creation.")]


def run_query(
    requester: str | None,
    tree: str | None,
    agent_id: str | None,
    label: str | None,
    stage: str | None,
    status: str | None,
    outcome: str | None,
    since: str | None,
    until: str | None,
) -> RunQuery:
    """The question in the words of the registry; keys are canonical. 422 for what is no instant."""
    stages: tuple[str, ...] | None = (stage,) if stage else None
    if status is not None:
        by_status, status_outcome = stages_and_outcome(status)
        stages = tuple(one for one in by_status if stages is None or one in stages)
        if status_outcome is not None and outcome not in (None, status_outcome):
            stages = ()
        outcome = outcome or status_outcome
    return RunQuery(
        requester=requester,
        tree=tree,
        agent_id=agent_id,
        label=label,
        stages=stages,
        outcome=outcome,
        since=instant_of(since, "since") if since else None,
        until=instant_of(until, "until") if until else None,
        waiting=WAITING_BY_STATUS.get(status or ""),
    )

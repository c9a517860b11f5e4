"""Which runs are wanted, as the query of a URL says it: the filters of the registry and of the
timeline."""

from typing import Annotated
from uuid import UUID

from fastapi import Depends, Query
from pydantic import Field

from application.queries.runs import RunFilter
from application.queries.views.run import RecordedStage, RunStatus
from domain.run.facts import RunOutcome
from domain.values.moments import MOMENT_CHARACTERS_MAX, MOMENT_FORMS
from domain.values.rules import RULE_NAMES
from infrastructure.inbound.http.requests.parameters import (
    RUN_ID_SCHEMA,
    TEXT_CHARS_MAX,
    TreeParameter,
)

DEPTH_MAX = 64
ByRequester = Annotated[
    str | None,
    Query(
        max_length=TEXT_CHARS_MAX,
        description="Spawned by this session: its key in any spelling, its id, or `current`.",
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
    tuple[RecordedStage, ...], Query(alias="stage", description="At this stage, or any of several.")
]
ByStatus = Annotated[
    tuple[RunStatus, ...],
    Query(alias="status", description="With this status, or any of several."),
]
ByOutcome = Annotated[
    tuple[RunOutcome, ...],
    Query(alias="outcome", description="Ended like this, or like any of several."),
]
CreatedSince = Annotated[
    str | None,
    Query(
        max_length=MOMENT_CHARACTERS_MAX,
        description=f"Created at this moment or later: {MOMENT_FORMS}.",
        examples=["12h"],
    ),
]
CreatedBefore = Annotated[
    str | None,
    Query(
        max_length=MOMENT_CHARACTERS_MAX,
        description=f"Created before this moment: {MOMENT_FORMS}.",
        examples=["2026-03-01T09:00:00Z"],
    ),
]
ByRule = Annotated[
    str | None,
    Query(
        max_length=64,
        description="Refused by this rule.",
        json_schema_extra={"enum": [*RULE_NAMES]},
    ),
]
ByDepth = Annotated[
    int | None,
    Query(
        ge=0,
        le=DEPTH_MAX,
        description="So deep; needs `requester`, `tree` or `rule` beside it.",
    ),
]
ByLabelPrefix = Annotated[
    str | None,
    Query(
        alias="labelPrefix",
        max_length=TEXT_CHARS_MAX,
        description=(
            "With a label that begins like this; needs `requester`, `tree` or `rule` beside it."
        ),
    ),
]
ByEarlierRun = Annotated[
    UUID | None,
    Query(
        alias="respawnedFrom",
        description="Respawned from the run with this id.",
        json_schema_extra=RUN_ID_SCHEMA,
    ),
]


# Not a plain function: one would be called in a thread of its own for every request.
async def run_filter(
    requester: ByRequester = None,
    tree: TreeParameter = None,
    agent_ids: ByAgent = (),
    labels: ByLabel = (),
    stages: ByStage = (),
    statuses: ByStatus = (),
    outcomes: ByOutcome = (),
    since: CreatedSince = None,
    until: CreatedBefore = None,
    rule: ByRule = None,
    depth: ByDepth = None,
    label_prefix: ByLabelPrefix = None,
    respawned_from: ByEarlierRun = None,
) -> RunFilter:
    """The filter, as the query says it."""
    return RunFilter(
        requester=requester,
        tree=tree,
        agent_ids=agent_ids,
        labels=labels,
        stages=stages,
        statuses=statuses,
        outcomes=outcomes,
        since=since,
        until=until,
        rule=rule,
        depth=depth,
        label_prefix=label_prefix,
        respawned_from=respawned_from,
    )


FilteredRuns = Annotated[RunFilter, Depends(run_filter)]

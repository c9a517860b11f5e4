"""The log in time: `GET /v1/timeline`, `GET /v1/events/histogram` and `GET /v1/moments`."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from application.queries.runs import RunFilter
from application.queries.timeline import bars, histogram, moments
from application.queries.timeline.bars import BARS_DEFAULT, BARS_MAX, TimelineView
from application.queries.timeline.histogram import (
    BUCKETS_DEFAULT,
    BUCKETS_MAX,
    BucketUnit,
    HistogramView,
)
from application.queries.timeline.moments import AROUND_DEFAULT, AROUND_MAX, MomentView
from infrastructure.inbound.http.requests.caller import (
    AT_POSITION,
    RUN_ID_SCHEMA,
    ByCaller,
    InjectedServices,
    view_response,
)
from infrastructure.inbound.http.requests.parameters import AsOfParameter
from infrastructure.inbound.http.responses.described import endpoint_responses
from infrastructure.inbound.http.routes.events import TYPE_SCHEMA
from infrastructure.inbound.http.routes.runs import (
    TEXT_CHARS_MAX,
    ByAgent,
    ByCursor,
    ByDepth,
    ByLabel,
    ByLabelPrefix,
    ByOutcome,
    ByRequester,
    ByRule,
    ByStage,
    ByStatus,
    ByTree,
    CreatedBefore,
    CreatedSince,
)

router = APIRouter(tags=["log"])
FromParameter = Annotated[
    str | None,
    Query(
        alias="from",
        max_length=64,
        description="What is behind this: `pos:N` or an RFC 3339 instant; all when left out.",
        examples=["pos:0"],
    ),
]
ToParameter = Annotated[
    str | None,
    Query(
        alias="to",
        max_length=64,
        description="And not behind this: `pos:N` or an RFC 3339 instant; now when left out.",
        examples=["pos:18342"],
    ),
]
TypesParameter = Annotated[
    tuple[Annotated[str, Field(max_length=2000, json_schema_extra=TYPE_SCHEMA)], ...],
    Query(description="Of any of these types: one each time, or names by commas."),
]


@router.get(
    "/v1/events/histogram",
    dependencies=AT_POSITION,
    operation_id="countEvents",
    response_model=HistogramView,
    summary="How much happened when",
    description=(
        "The events of the log between `from` and `to` in buckets of as many positions each, or of"
        " as much time, with their counts by type, by outcome of runs that ended, and by rule that"
        " refused a spawn. It takes as long for a log of millions as for a short one. With `runId`"
        " or `tree` their events are looked at one by one, 20,000 at most: `countedTo` says where"
        " that ended, and is null when all were counted. Without one of them the token needs the"
        " pattern `*`."
    ),
    responses=endpoint_responses("not_found"),
)
async def count_events(
    services: InjectedServices,
    caller: ByCaller,
    buckets: Annotated[
        int, Query(ge=1, le=BUCKETS_MAX, description="How many buckets at most.")
    ] = BUCKETS_DEFAULT,
    by: Annotated[
        BucketUnit, Query(description="Buckets of as many positions, or of as much time.")
    ] = "position",
    begin: FromParameter = None,
    end: ToParameter = None,
    types: TypesParameter = (),
    runId: Annotated[
        str | None,
        Query(max_length=64, description="Of this run only.", json_schema_extra=RUN_ID_SCHEMA),
    ] = None,
    tree: ByTree = None,
    actor: Annotated[
        str | None,
        Query(
            max_length=TEXT_CHARS_MAX,
            description=(
                "On the word of this actor: a kind (`token`, `child`, `anybody`, `system`), the id"
                " of a token, or the key of a session that acted. Needs `runId` or `tree`."
            ),
        ),
    ] = None,
) -> Response:
    """The histogram."""
    counted = await histogram.count_events(
        services,
        caller,
        buckets=buckets,
        by=by,
        begin=begin,
        end=end,
        types=types,
        run_id=runId,
        tree=tree,
        actor=actor,
    )
    return view_response(services, counted)


@router.get(
    "/v1/timeline",
    dependencies=AT_POSITION,
    operation_id="listTimeline",
    response_model=TimelineView,
    summary="Runs as bars",
    description=(
        "The runs that were asked for and not over between `from` and `to`, the newest first, each"
        " with the position and instant of every stage that it had come to as of `at`, and buckets"
        " of as much time each with what was recorded in them, as `/v1/events/histogram` has them."
        " The buckets count all of the log in that part, or the tree that is asked for; the other"
        " filters are for runs alone. A token that does not see all of the log gets none unless it"
        " names a tree of its own."
    ),
    responses=endpoint_responses("foreign_cursor"),
)
async def list_timeline(
    services: InjectedServices,
    caller: ByCaller,
    begin: FromParameter = None,
    end: ToParameter = None,
    requester: ByRequester = None,
    tree: ByTree = None,
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
    at: AsOfParameter = None,
    limit: Annotated[int, Query(ge=1, le=BARS_MAX, description="How many runs at most.")] = (
        BARS_DEFAULT
    ),
    cursor: ByCursor = None,
    buckets: Annotated[
        int | None,
        Query(
            ge=0,
            le=BUCKETS_MAX,
            description="How many buckets of time; 0 for none, 100 when left out.",
        ),
    ] = None,
) -> Response:
    """The timeline."""
    criteria = RunFilter(
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
    )
    found = await bars.list_bars(
        services,
        caller,
        criteria,
        begin=begin,
        end=end,
        at=at,
        limit=limit,
        cursor=cursor,
        buckets=buckets,
    )
    return view_response(services, found)


@router.get(
    "/v1/moments",
    dependencies=AT_POSITION,
    operation_id="getMoment",
    response_model=MomentView,
    summary="A moment of the log",
    description=(
        "Which position an instant is, and at which instant a position was recorded, with the"
        " number of the configuration in force then and the events on both sides of it."
    ),
    responses=endpoint_responses(),
)
async def get_moment(
    services: InjectedServices,
    caller: ByCaller,
    at: AsOfParameter = None,
    around: Annotated[
        int, Query(ge=0, le=AROUND_MAX, description="How many events on each side.")
    ] = AROUND_DEFAULT,
) -> Response:
    """The moment."""
    found = await moments.get_moment(services, caller, at=at, around=around)
    return view_response(services, found)

"""The log in time: `GET /v1/timeline`, `GET /v1/events/histogram` and `GET /v1/moments`."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from application.queries.timeline import histogram, moments
from application.queries.timeline.histogram import (
    BUCKETS_DEFAULT,
    BUCKETS_MAX,
    BucketUnit,
    HistogramView,
)
from application.queries.timeline.moments import AROUND_DEFAULT, AROUND_MAX, MomentView
from infrastructure.inbound.http.requests.caller import (
    AT_POSITION,
    ByCaller,
    InjectedServices,
    view_response,
)
from infrastructure.inbound.http.requests.parameters import (
    ActorParameter,
    AsOfParameter,
    FromParameter,
    RunParameter,
    ToParameter,
    TreeParameter,
    TypesParameter,
)
from infrastructure.inbound.http.responses.described import endpoint_responses

router = APIRouter(tags=["log"])


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
        " that ended, and is null when all were counted. `actor` needs one of the two. Without"
        " them the token needs the pattern `*`."
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
    run_id: RunParameter = None,
    tree: TreeParameter = None,
    actor: ActorParameter = None,
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
        run_id=run_id,
        tree=tree,
        actor=actor,
    )
    return view_response(services, counted)


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

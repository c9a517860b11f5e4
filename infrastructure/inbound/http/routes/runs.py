"""The registry: `GET /v1/runs` and `GET /v1/runs/{runId}`."""

import re
from hashlib import sha256
from typing import Annotated, Literal, cast

from fastapi import APIRouter, Query, Request, Response

from application.queries import runs as queries
from application.queries.paging import LIMIT_DEFAULT
from application.queries.search.run_words import WORDS_CHARACTERS_MAX, WORDS_MAX
from application.queries.views.run import (
    RunListView,
    RunMetadataView,
    RunView,
)
from application.queries.views.view import Answer
from application.queries.wait import WaitStage
from infrastructure.inbound.http.requests.caller import (
    AT_POSITION,
    ByCaller,
    InjectedServices,
    RunInPath,
    caller_of,
    position_headers,
    services_of,
    view_response,
)
from infrastructure.inbound.http.requests.parameters import (
    AsOfParameter,
    ByCursor,
    LimitParameter,
    MinPosition,
    Wait,
)
from infrastructure.inbound.http.requests.run_filter import FilteredRuns
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.described import endpoint_responses

SortOrder = Annotated[Literal["asc", "desc"], Query(description="By creation.")]


ByWords = Annotated[
    str | None,
    Query(
        max_length=WORDS_CHARACTERS_MAX,
        description=(
            f"With each of these words, {WORDS_MAX} at most, in label or task, in upper or lower"
            " case. The first 10,000 characters of a task are looked through; for a token without"
            " `content` those that lists show."
        ),
    ),
]
WithTotals = Annotated[
    bool,
    Query(description="Tell how many runs there are by status, agent and rule, on the first page."),
]
router = APIRouter(tags=["runs"])
VERSION_MAX = 2**31 - 1
WaitUntilParameter = Annotated[
    WaitStage | None,
    Query(description="What to wait for; `ended` when left out. A refusal ends every wait."),
]
Version = Annotated[
    int | None,
    Query(ge=1, le=VERSION_MAX, description="The run as it was after so many of its events."),
]


@router.get(
    "/v1/runs",
    dependencies=AT_POSITION,
    operation_id="listRuns",
    response_model=RunListView,
    summary="The registry",
    description=(
        "Runs, newest first, as summaries. The pages of one listing are one snapshot: a cursor"
        " keeps the position at which the listing began. One request looks at a bounded number of"
        " runs, so a page may be short or empty for a token that may see few of them: the listing"
        " is over when `nextCursor` is null, and not before."
    ),
    responses=endpoint_responses("not_found", "foreign_cursor"),
)
async def list_runs(
    services: InjectedServices,
    caller: ByCaller,
    filters: FilteredRuns,
    at: AsOfParameter = None,
    limit: LimitParameter = LIMIT_DEFAULT,
    cursor: ByCursor = None,
    order: SortOrder = "desc",
    q: ByWords = None,
    totals: WithTotals = False,
) -> Response:
    """A page of the registry."""
    page = await queries.list_runs(
        services,
        caller,
        filters,
        at=at,
        limit=limit,
        cursor=cursor,
        order=order,
        words=q,
        totals=totals,
    )
    return view_response(services, page)


PATH = "/v1/runs/{runId}"
PLAIN_QUERY = re.compile(rb"(wait=[0-9]{1,6}(ms|s|m)(&until=(started|ended|announced|archived))?)?")
"""What is asked of a run most: nothing in it has to be solved, or could be wrong."""


@router.get(
    PATH,
    dependencies=AT_POSITION,
    operation_id="getRun",
    response_model=RunView | RunMetadataView,
    summary="One run",
    description=(
        "The run now, as of a position or instant, or after so many of its own events. With"
        " `wait` and `until` the answer comes when the stage is reached, on a refusal, or when"
        " the time is over. Of a run at work `usage`, `estimatedCostUsd`, `transcriptEntries` and,"
        " for a token with the scope `content`, the last `progress` are those of its transcript so"
        " far, and `runtimeMs` goes up to now; as of an earlier position all of them are null."
    ),
    responses=endpoint_responses("not_found"),
)
async def get_run(
    request: Request,
    services: InjectedServices,
    caller: ByCaller,
    runId: RunInPath,
    at: AsOfParameter = None,
    version: Version = None,
    wait: Wait = None,
    until: WaitUntilParameter = None,
    minPosition: MinPosition = None,
) -> Response:
    """One run."""
    run = await queries.get_run(
        services,
        caller,
        runId,
        at=at,
        version=version,
        wait=wait,
        until=until,
        min_position=minPosition,
    )
    return _run_response(request, services, run)


async def get_run_directly(request: Request) -> Response:
    """One run, now or once it has come to a stage, past what the framework solves for each
    request."""
    services, caller = services_of(request), await caller_of(request)
    run_id, query = request.path_params["runId"], request.query_params
    wait, until = query.get("wait"), query.get("until")
    run = await queries.get_run(
        services, caller, run_id, wait=wait, until=cast(WaitStage | None, until)
    )
    return _run_response(request, services, run)


def _run_response(
    request: Request, services: Services, run: Answer[RunView | RunMetadataView]
) -> Response:
    headers = {"ETag": _etag(run.view)}
    if _is_known(request, headers["ETag"]):
        headers |= position_headers(services, run.position)
        return Response(status_code=304, headers=headers)
    return view_response(services, run, headers=headers)


def _etag(view: RunView | RunMetadataView) -> str:
    """Return an entity tag that changes with each field of the view but the running time."""
    if view.version == 0:
        # A waiting message has no event: events of the runs before it change its view.
        return f'"0.{sha256(view.model_dump_json().encode()).hexdigest()[:32]}"'
    # No event of the run itself says that another one was made from it.
    respawns = f"-{len(view.respawns)}" if view.respawns else ""
    # Nor does one say what a run at work has told of tokens and progress.
    is_told = view.stage == "started" and view.transcript_entries is not None
    entries = f".{view.transcript_entries}" if is_told else ""
    return f'"{view.version}{respawns}{entries}"'


def _is_known(request: Request, etag: str) -> bool:
    """Whether the caller says that it has this version already."""
    given = ",".join(request.headers.getlist("if-none-match")).split(",")
    return bool({one.strip().removeprefix("W/") for one in given} & {etag, "*"})

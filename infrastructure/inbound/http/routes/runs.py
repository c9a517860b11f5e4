"""The registry: `GET /v1/runs` and `GET /v1/runs/{runId}`."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from infrastructure.inbound.http import run_filters as asking
from infrastructure.inbound.http.examples import spawns_and_runs
from infrastructure.inbound.http.requests import paging
from infrastructure.inbound.http.requests.as_of import AsOfParameter, resolve_as_of
from infrastructure.inbound.http.requests.caller import (
    ByCaller,
    InjectedServices,
    RunInPath,
    json_response,
    position_headers,
    require_scope,
    resolve_session_key,
    visible_run,
)
from infrastructure.inbound.http.requests.long_poll import Wait, wait_seconds, wait_until
from infrastructure.inbound.http.responses.described import problem_responses, success_response
from infrastructure.inbound.http.responses.problems import HttpProblem
from infrastructure.inbound.http.run_pages import visible_runs
from infrastructure.inbound.http.schemas.run import run_bodies
from infrastructure.inbound.http.step_bodies import add_undo_errors

router = APIRouter(tags=["runs"])
VERSION_MAX = 2**31 - 1
WaitUntilParameter = Annotated[
    Literal["started", "ended", "announced", "archived"] | None,
    Query(description="What to wait for; `ended` when left out. A refusal ends every wait."),
]
Version = Annotated[
    int | None,
    Query(ge=1, le=VERSION_MAX, description="The run as it was after so many of its events."),
]


@router.get(
    "/v1/runs",
    operation_id="listRuns",
    summary="The registry",
    description=(
        "Runs, newest first, as summaries. The pages of one listing are one snapshot: a cursor"
        " keeps the position at which the listing began. One request looks at a bounded number of"
        " runs, so a page may be short or empty for a token that may see few of them: the listing"
        " is over when `nextCursor` is null, and not before."
    ),
    responses={
        **success_response(spawns_and_runs.RUNS),
        **problem_responses("foreign_cursor"),
    },
)
async def list_runs(
    doors: InjectedServices,
    caller: ByCaller,
    requester: asking.ByRequester = None,
    tree: asking.ByTree = None,
    agent_ids: asking.ByAgent = (),
    labels: asking.ByLabel = (),
    stages: asking.ByStage = (),
    statuses: asking.ByStatus = (),
    outcomes: asking.ByOutcome = (),
    since: asking.CreatedSince = None,
    until: asking.CreatedBefore = None,
    at: AsOfParameter = None,
    limit: paging.LimitParameter = paging.LIMIT_DEFAULT,
    cursor: asking.ByCursor = None,
    order: asking.SortOrder = "desc",
) -> Response:
    """A page of the registry."""
    require_scope(caller, "read")
    if requester:
        requester = await resolve_session_key(doors, caller, requester, pointer="/query/requester")
    if tree:
        tree = await resolve_session_key(doors, caller, tree, pointer="/query/tree")
    query = asking.run_query(
        requester, tree, agent_ids, labels, stages, statuses, outcomes, since, until
    )
    question = paging.fingerprint(query, order, caller.patterns, at)
    if cursor is None:
        place = paging.Cursor((await resolve_as_of(doors, at)).position, -1)
    else:
        head = (await resolve_as_of(doors, None)).position
        place = paging.decode_cursor(cursor, doors.work.log.log_id, question, head)
    page = await visible_runs(
        doors.work.registry,
        doors.access,
        caller,
        query,
        place,
        limit=limit,
        ascending=order == "asc",
    )
    following = paging.Cursor(place.at, page.behind) if page.behind is not None else None
    body = {
        "items": await run_bodies(page.runs, doors.work.contents, full=False),
        "nextCursor": (
            paging.encode_cursor(following, doors.work.log.log_id, question) if following else None
        ),
    }
    return json_response(doors, body, place.at)


@router.get(
    "/v1/runs/{runId}",
    operation_id="getRun",
    summary="One run",
    description=(
        "The run now, as of a position or instant, or after so many of its own events. With"
        " `wait` and `until` the answer comes when the stage is reached, on a refusal, or when"
        " the time is over."
    ),
    responses={
        **success_response(spawns_and_runs.RUN),
        **problem_responses("not_found"),
    },
)
async def get_run(
    request: Request,
    doors: InjectedServices,
    caller: ByCaller,
    runId: RunInPath,
    at: AsOfParameter = None,
    version: Version = None,
    wait: Wait = None,
    until: WaitUntilParameter = None,
) -> Response:
    """One run."""
    require_scope(caller, "read")
    seconds = wait_seconds(wait)
    if sum(one is not None for one in (wait, at, version)) > 1:
        raise HttpProblem(
            "invalid_request", "wait, at and version speak of different times: use one"
        )
    if until is not None and wait is None:
        raise HttpProblem(
            "invalid_request", "until says what to wait for: give wait too, as in 30s"
        )
    moment = await resolve_as_of(doors, at)
    run = await visible_run(doors, caller, runId, moment)
    if seconds:
        await wait_until(doors, run, until or "ended", seconds)
        moment = await resolve_as_of(doors, None)
        run = await visible_run(doors, caller, runId, moment)
    if version is not None:
        earlier = await doors.work.registry.run_at_version(run.run_id, version)
        if earlier is None:
            detail = f"the run has {run.version} events; ask for one of them"
            headers = position_headers(doors, moment.position)
            raise HttpProblem("not_found", detail, headers=headers)
        run = earlier
    full = caller.may("content") and await doors.access.covers_run(caller, run)
    bodies = await run_bodies((run,), doors.work.contents, full=full)
    if full:
        await add_undo_errors(bodies[0]["undoing"], run, doors.work.log, doors.work.contents)
    etag = f'"{run.version}"'
    headers = {"ETag": etag}
    if _is_known(request, etag):
        headers |= position_headers(doors, moment.position)
        return Response(status_code=304, headers=headers)
    return json_response(doors, bodies[0], moment.position, headers=headers)


def _is_known(request: Request, etag: str) -> bool:
    """Whether the caller says that it has this version already."""
    given = ",".join(request.headers.getlist("if-none-match")).split(",")
    return bool({one.strip().removeprefix("W/") for one in given} & {etag, "*"})

"""The registry: `GET /v1/runs` and `GET /v1/runs/{runId}`."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from application.ports.registry import RunQuery
from infrastructure.inbound.http.examples import spawns_and_runs
from infrastructure.inbound.http.requests import paging
from infrastructure.inbound.http.requests.as_of import AsOfParameter, instant_of, resolve_as_of
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
from infrastructure.inbound.http.requests.paging import visible_runs
from infrastructure.inbound.http.responses.described import problem_responses, success_response
from infrastructure.inbound.http.responses.problems import HttpProblem
from infrastructure.inbound.http.schemas.run import ROWS_BY_STATUS, add_undo_errors, run_bodies

# What runs can be asked for by.


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
    requester: ByRequester = None,
    tree: ByTree = None,
    agent_ids: ByAgent = (),
    labels: ByLabel = (),
    stages: ByStage = (),
    statuses: ByStatus = (),
    outcomes: ByOutcome = (),
    since: CreatedSince = None,
    until: CreatedBefore = None,
    at: AsOfParameter = None,
    limit: paging.LimitParameter = paging.LIMIT_DEFAULT,
    cursor: ByCursor = None,
    order: SortOrder = "desc",
) -> Response:
    """A page of the registry."""
    require_scope(caller, "read")
    if requester:
        requester = await resolve_session_key(doors, caller, requester, pointer="/query/requester")
    if tree:
        tree = await resolve_session_key(doors, caller, tree, pointer="/query/tree")
    query = run_query(requester, tree, agent_ids, labels, stages, statuses, outcomes, since, until)
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

"""The registry: `GET /v1/runs` and `GET /v1/runs/{runId}`."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from application.access import Caller
from application.ports.registry import RunQuery
from domain.run.state import Run
from infrastructure.inbound.http import paging
from infrastructure.inbound.http.described import problems, success
from infrastructure.inbound.http.doors import Doors
from infrastructure.inbound.http.problems import Problem
from infrastructure.inbound.http.requests import (
    At,
    ByCaller,
    InDoors,
    answer,
    as_of,
    canonical_key,
    instant_of,
    must,
    visible_run,
)
from infrastructure.inbound.http.run_bodies import run_bodies, stages_and_outcome
from infrastructure.inbound.http.waiting import wait_seconds, wait_until

router = APIRouter(tags=["runs"])

Stage = Literal[
    "requested", "scripts-resolved", "overridden", "session-created", "queued", "started",
    "ended", "announced", "archived", "refused",
]  # fmt: skip
Status = Literal[
    "preparing", "waiting", "queued", "running", "done", "failed", "timeout", "stopped",
    "unknown", "refused",
]  # fmt: skip
Outcome = Literal["success", "error", "timeout", "stopped", "unknown"]
Until = Literal["started", "ended", "announced", "archived"]
Text = Annotated[str | None, Query(max_length=2048)]


@router.get(
    "/v1/runs",
    operation_id="listRuns",
    summary="The registry",
    description=(
        "Runs, newest first, as summaries. The pages of one listing are one snapshot: a cursor"
        " keeps the position at which the listing began."
    ),
    responses={
        **success({"items": [{"runId": "3f0e…", "stage": "archived"}], "nextCursor": None}),
        **problems("invalid_request", "foreign_cursor"),
    },
)
async def list_runs(
    doors: InDoors,
    caller: ByCaller,
    requester: Text = None,
    tree: Text = None,
    agent_id: Annotated[str | None, Query(alias="agentId", max_length=64)] = None,
    label: Text = None,
    stage: Stage | None = None,
    status: Status | None = None,
    outcome: Outcome | None = None,
    since: str | None = None,
    until: str | None = None,
    at: At = None,
    limit: Annotated[int, Query(ge=1, le=paging.LIMIT_MAX)] = paging.LIMIT_DEFAULT,
    cursor: str | None = None,
    order: Literal["asc", "desc"] = "desc",
) -> Response:
    """A page of the registry."""
    must(caller, "read")
    requester = canonical_key(doors, requester) if requester else None
    tree = canonical_key(doors, tree) if tree else None
    query = _query(requester, tree, agent_id, label, stage, status, outcome, since, until)
    question = paging.fingerprint(query, order, caller.patterns, at)
    if cursor is None:
        place = paging.Cursor((await as_of(doors, at)).position, -1)
    else:
        place = paging.read(cursor, doors.work.log.log_id, question)
    found, last = await _visible(doors, caller, query, place, limit, order == "asc")
    following = paging.Cursor(place.at, last) if last is not None else None
    body = {
        "items": await run_bodies(found, doors.work.contents, full=False),
        "nextCursor": (
            paging.written(following, doors.work.log.log_id, question) if following else None
        ),
    }
    return answer(doors, body, place.at)


async def _visible(
    doors: Doors,
    caller: Caller,
    query: RunQuery,
    place: paging.Cursor,
    limit: int,
    ascending: bool,
) -> tuple[list[Run], int | None]:
    """Up to `limit` runs that the caller may see, and where to go on (None at the end)."""
    found: list[Run] = []
    behind = place.behind if place.behind >= 0 else None
    while True:
        page = await doors.work.registry.runs(
            query, at=place.at, limit=limit + 1, behind=behind, ascending=ascending
        )
        for run in page:
            if len(found) == limit:
                return found, behind
            if await doors.access.covers_run(caller, run):
                found.append(run)
            behind = run.created_position
        if len(page) <= limit:
            return found, None


def _query(
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
    )


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
        **success({"runId": "3f0e…", "stage": "ended", "status": "done", "version": 9}),
        **problems("not_found", "invalid_request"),
    },
)
async def get_run(
    request: Request,
    doors: InDoors,
    caller: ByCaller,
    runId: str,
    at: At = None,
    version: Annotated[int | None, Query(ge=1)] = None,
    wait: str | None = None,
    until: Until | None = None,
) -> Response:
    """One run."""
    must(caller, "read")
    seconds = wait_seconds(wait)
    if seconds and (at is not None or version is not None):
        raise Problem("invalid_request", "wait is about the future and at about the past: use one")
    moment = await as_of(doors, at)
    run = await visible_run(doors, caller, runId, moment)
    if seconds:
        await wait_until(doors, run, until or "ended", seconds)
        moment = await as_of(doors, None)
        run = await visible_run(doors, caller, runId, moment)
    if version is not None:
        earlier = await doors.work.registry.run_at_version(run.run_id, version)
        if earlier is None:
            raise Problem("not_found", f"the run has {run.version} events; ask for one of them")
        run = earlier
    full = caller.may("content") and await doors.access.covers_run(caller, run)
    bodies = await run_bodies((run,), doors.work.contents, full=full)
    etag = f'"{run.version}"'
    headers = {"ETag": etag}
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    return answer(doors, bodies[0], moment.position, headers=headers)

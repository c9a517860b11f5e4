"""`POST /v1/runs/{runId}/stop`."""

from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field

from application.log.event_log import AlreadyReserved, StoredAnswer
from infrastructure.inbound.http.examples import spawns_and_runs
from infrastructure.inbound.http.replays import replay_answer
from infrastructure.inbound.http.requests.as_of import resolve_as_of
from infrastructure.inbound.http.requests.bodies import Body, read_body
from infrastructure.inbound.http.requests.caller import (
    ByCaller,
    InjectedServices,
    RunInPath,
    json_response,
    require_scope,
    reservation_of,
    visible_run,
)
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.described import (
    BODY_PROBLEMS,
    KEY_PROBLEMS,
    problem_responses,
    request_body_schema,
    success_response,
)
from infrastructure.inbound.http.responses.problems import HttpProblem

router = APIRouter(tags=["control"])


class StopBody(Body):
    """Why."""

    reason: Annotated[str, Field(max_length=2000)] | None = None


@router.post(
    "/v1/runs/{runId}/stop",
    operation_id="stopRun",
    summary="Stop a run and its descendants",
    description=(
        "A run that is prepared or queued is over at once; one that executes is over when its"
        " processes are gone: wait for it with `GET /v1/runs/{runId}?wait=30s&until=ended`."
        " Stopping one that is over changes nothing."
    ),
    responses={
        **success_response(spawns_and_runs.STOPPED),
        **problem_responses("not_found", *BODY_PROBLEMS, *KEY_PROBLEMS),
    },
    openapi_extra=request_body_schema(StopBody, {"reason": "no longer needed"}),
)
async def stop_run(
    request: Request, doors: InjectedServices, caller: ByCaller, runId: RunInPath
) -> Response:
    """Stop."""
    require_scope(caller, "control")
    body, raw = await read_body(request, StopBody)
    run = await visible_run(doors, caller, runId, await resolve_as_of(doors, None))
    if not await doors.access.covers_run(caller, run) or caller.run_id == run.run_id:
        raise HttpProblem(
            "not_permitted", "this token may stop the descendants of its session only"
        )
    reservation = reservation_of(request, caller, raw)
    try:
        told = await doors.stopping.stop(run, caller.actor, body.reason, reservation)
    except AlreadyReserved as reserved:
        assert reservation is not None
        return await replay_answer(reserved, reservation, lambda one, _: _response(doors, one))
    return await _response(doors, told)


async def _response(doors: Services, told: StoredAnswer) -> Response:
    return json_response(doors, told.body, await doors.work.log.head())

"""`POST /v1/sessions/{key}/stop`."""

from fastapi import APIRouter, Request, Response

from application.log.event_log import AlreadyReserved, StoredAnswer
from infrastructure.inbound.http.examples import sessions
from infrastructure.inbound.http.replays import replay_answer
from infrastructure.inbound.http.requests.bodies import read_body
from infrastructure.inbound.http.requests.caller import (
    ByCaller,
    InjectedServices,
    KeyInPath,
    json_response,
    require_scope,
    reservation_of,
    resolve_session_key,
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
from infrastructure.inbound.http.routes.control import StopBody

router = APIRouter(tags=["control"])


@router.post(
    "/v1/sessions/{key}/stop",
    operation_id="stopSession",
    summary="Stop a session's run and all below it",
    description=(
        "Its own run, if it has one that is not over, and all its descendants. A child that stays"
        " open after its runs (mode `session`) is closed by it: it takes no more messages, and is"
        " put away with all its runs once the last one is announced. Repeating it changes nothing."
    ),
    responses={
        **success_response(sessions.STOPPED),
        **problem_responses("not_found", *BODY_PROBLEMS, *KEY_PROBLEMS),
    },
    openapi_extra=request_body_schema(StopBody, {"reason": "no longer needed"}),
)
async def stop_session(
    request: Request, doors: InjectedServices, caller: ByCaller, key: KeyInPath
) -> Response:
    """Stop."""
    require_scope(caller, "control")
    body, raw = await read_body(request, StopBody)
    session_key = await resolve_session_key(doors, caller, key)
    session = await doors.work.registry.session(session_key)
    if session is None or not await doors.access.covers_session(caller, session_key):
        raise HttpProblem("not_found", "there is no such session on record")
    if caller.run_id is not None and caller.run_id == session.run_id:
        raise HttpProblem(
            "not_permitted", "this token may stop the descendants of its session only"
        )
    reservation = reservation_of(request, caller, raw)
    try:
        told = await doors.stopping.stop_session(session, caller.actor, body.reason, reservation)
    except AlreadyReserved as reserved:
        assert reservation is not None
        return await replay_answer(reserved, reservation, lambda one, _: _response(doors, one))
    return await _response(doors, told)


async def _response(doors: Services, told: StoredAnswer) -> Response:
    return json_response(doors, told.body, await doors.work.log.head())

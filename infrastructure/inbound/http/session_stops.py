"""`POST /v1/sessions/{key}/stop`."""

from fastapi import APIRouter, Request, Response

from application.ports.event_log import AlreadyReserved, Answer
from infrastructure.inbound.http import session_examples
from infrastructure.inbound.http.bodies import read_body
from infrastructure.inbound.http.controls import StopBody
from infrastructure.inbound.http.described import (
    BODY_PROBLEMS,
    KEY_PROBLEMS,
    problems,
    success,
    takes,
)
from infrastructure.inbound.http.doors import Doors
from infrastructure.inbound.http.problems import Problem
from infrastructure.inbound.http.replays import first_answer_again
from infrastructure.inbound.http.requests import (
    ByCaller,
    InDoors,
    KeyInPath,
    answer,
    must,
    reservation_of,
    resolved_key,
)

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
        **success(session_examples.STOPPED),
        **problems("not_found", *BODY_PROBLEMS, *KEY_PROBLEMS),
    },
    openapi_extra=takes(StopBody, {"reason": "no longer needed"}),
)
async def stop_session(
    request: Request, doors: InDoors, caller: ByCaller, key: KeyInPath
) -> Response:
    """Stop."""
    must(caller, "control")
    body, raw = await read_body(request, StopBody)
    session_key = await resolved_key(doors, caller, key)
    session = await doors.work.registry.session(session_key)
    if session is None or not await doors.access.covers_session(caller, session_key):
        raise Problem("not_found", "there is no such session on record")
    if caller.run_id is not None and caller.run_id == session.run_id:
        raise Problem("not_permitted", "this token may stop the descendants of its session only")
    reservation = reservation_of(request, caller, raw)
    try:
        told = await doors.stopping.stop_session(session, caller.actor, body.reason, reservation)
    except AlreadyReserved as reserved:
        assert reservation is not None
        return await first_answer_again(reserved, reservation, lambda one, _: _response(doors, one))
    return await _response(doors, told)


async def _response(doors: Doors, told: Answer) -> Response:
    return answer(doors, told.body, await doors.work.log.head())

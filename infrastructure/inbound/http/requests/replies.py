"""How a recorded refusal is answered."""

from collections.abc import Awaitable, Callable

from fastapi import Request, Response

from application.log.event_log import AlreadyReserved, Reservation, StoredAnswer
from infrastructure.inbound.http.requests.caller import position_headers
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.problems import HttpProblem, problem_response


def refusal_response(
    services: Services, request: Request, told: StoredAnswer, position: int
) -> Response:
    """The problem of a refused spawn, or of a message that was refused."""
    code = "spawn_forbidden" if told.kind == "forbidden" else "spawn_error"
    text, task = str(told.body["text"]), told.body.get("task")
    problem = HttpProblem(
        code,
        text,
        errors=[] if task is None else [{"pointer": f"/task/{task}", "detail": text}],
        rule=told.body["rule"],
        runId=told.body["runId"],
        current=told.body["current"],
        limit=told.body["limit"],
        # Not in what earlier releases have kept.
        childSessionKey=told.body.get("childSessionKey"),
        batchId=told.body.get("batchId"),
        headers=position_headers(services, position),
    )
    return problem_response(problem, request.scope)


# Repeated requests: the first answer again, or why there is none.


Render = Callable[[StoredAnswer, bool], Awaitable[Response]]
"""Turns an answer into a response; True when it is a repeat."""


async def replay_answer(
    reserved: AlreadyReserved, reservation: Reservation, render: Render
) -> Response:
    """The answer on record, for the same request; 422 for another one, 409 while none is there."""
    found = reserved.reserved
    if found.fingerprint != reservation.fingerprint:
        raise HttpProblem(
            "idempotency_key_reused",
            "this Idempotency-Key was used for another request; use a new one",
        )
    if found.answer is None:
        raise HttpProblem(
            "idempotency_in_flight",
            "a request with this Idempotency-Key is under way; ask again in a moment",
            runId=str(found.run_id) if found.run_id else None,
            headers={"Retry-After": "1"},
        )
    response = await render(found.answer, True)
    response.headers["Idempotent-Replayed"] = "true"
    return response

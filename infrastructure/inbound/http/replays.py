"""Repeated requests: the first answer again, or why there is none."""

from collections.abc import Awaitable, Callable

from fastapi import Response

from application.log.event_log import AlreadyReserved, Reservation, StoredAnswer
from infrastructure.inbound.http.responses.problems import HttpProblem

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

"""How a command is answered: once for an idempotency key, and a recorded refusal as a problem."""

from collections.abc import Awaitable, Callable

from fastapi import Request, Response

from application.commands.context import CommandResponse
from application.commands.once import answer_on_record
from application.log.event_log import AlreadyReserved, Reservation, StoredAnswer
from application.queries.access import Caller
from infrastructure.inbound.http.requests.caller import (
    json_response,
    position_headers,
    reservation_of,
)
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.problems import HttpProblem, problem_response

REFUSALS = frozenset({"forbidden", "error"})
"""Kinds of answers on record that are problems."""


def refusal_response(
    request: Request, services: Services, refusal: StoredAnswer, position: int
) -> Response:
    """The problem of a refused spawn, or of a message that was refused."""
    code = "spawn_forbidden" if refusal.kind == "forbidden" else "spawn_error"
    text, task = str(refusal.body["text"]), refusal.body.get("task")
    problem = HttpProblem(
        code,
        text,
        errors=[] if task is None else [{"pointer": f"/task/{task}", "detail": text}],
        rule=refusal.body["rule"],
        runId=refusal.body["runId"],
        current=refusal.body["current"],
        limit=refusal.body["limit"],
        # Not in what earlier releases have kept.
        childSessionKey=refusal.body.get("childSessionKey"),
        batchId=refusal.body.get("batchId"),
        headers=position_headers(services, position),
    )
    return problem_response(problem, request.scope)


def plain_response(_: Request, services: Services, answer: StoredAnswer, position: int) -> Response:
    """The answer as it is on record."""
    return json_response(services, answer.body, position)


async def respond_once(
    request: Request,
    services: Services,
    caller: Caller,
    raw: bytes,
    act: Callable[[Reservation | None], Awaitable[CommandResponse]],
    render: Callable[[Request, Services, StoredAnswer, int], Response] = plain_response,
) -> Response:
    """Act, and answer; a request that repeats its idempotency key gets the answer on record.

    422 when the key was used for another request, 409 while the first one is under way.
    """
    reservation = reservation_of(request, caller, raw)
    headers = {}
    try:
        answer, position = await act(reservation)
    except AlreadyReserved as repeated:
        assert reservation is not None
        answer, position = answer_on_record(repeated.reserved, reservation), None
        headers["Idempotent-Replayed"] = "true"
    if position is None:
        position = await services.work.log.head()
    response = render(request, services, answer, position)
    response.headers.update(headers)
    return response

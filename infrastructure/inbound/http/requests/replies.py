"""Recorded refusals as problems."""

from starlette.requests import Request
from starlette.responses import Response

from application.log.event_log import StoredAnswer
from infrastructure.inbound.http.requests.caller import position_headers
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.problems import HttpProblem, problem_response

REFUSALS = frozenset({"forbidden", "error"})
"""Kinds of recorded answers that are sent as problems."""


def refusal_response(
    request: Request, services: Services, refusal: StoredAnswer, position: int
) -> Response:
    """Return the problem of a refused spawn or message."""
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
        childSessionKey=refusal.body.get("childSessionKey"),
        batchId=refusal.body.get("batchId"),
        headers=position_headers(services, position),
    )
    return problem_response(problem, request.scope)

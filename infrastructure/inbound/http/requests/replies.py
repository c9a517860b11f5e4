"""How a recorded refusal is answered."""

from fastapi import Request, Response

from application.log.event_log import StoredAnswer
from infrastructure.inbound.http.requests.caller import position_headers
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.problems import HttpProblem, problem_response


def refusal_response(
    doors: Services, request: Request, told: StoredAnswer, position: int
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
        headers=position_headers(doors, position),
    )
    return problem_response(problem, request.scope)

"""`/healthz` and `/readyz`: for those who watch the server; no token is needed."""

import orjson
from fastapi import APIRouter, Response

from application.concurrency.tasks import with_timeout
from infrastructure.inbound.http.requests.caller import InjectedServices, json_response
from infrastructure.inbound.http.responses.described import endpoint_responses
from infrastructure.inbound.http.responses.problems import HttpProblem
from infrastructure.inbound.http.schemas.answers import HealthAnswer, ReadinessAnswer

router = APIRouter(tags=["health"])
ANSWER_SECONDS = 2.0
"""How long the database may take: who asks whether it is ready does not wait for long."""


@router.get(
    "/healthz",
    operation_id="getHealth",
    response_model=HealthAnswer,
    summary="Alive",
    description="The process answers.",
    responses=endpoint_responses(needs_token=False),
    openapi_extra={"security": []},
)
async def healthz() -> Response:
    """Alive."""
    return Response(orjson.dumps({"status": "ok"}), media_type="application/json")


@router.get(
    "/readyz",
    operation_id="getReadiness",
    response_model=ReadinessAnswer,
    summary="Ready",
    description="The database answers, its schema and format are known, the tail is not behind.",
    responses=endpoint_responses(needs_token=False),
    openapi_extra={"security": []},
)
async def readyz(services: InjectedServices) -> Response:
    """Ready."""
    readiness = await services.readiness()
    if not readiness.ready:
        raise HttpProblem("unavailable", "; ".join(readiness.reasons))
    try:
        head = await with_timeout(services.work.log.head(), ANSWER_SECONDS)
    except TimeoutError:
        raise HttpProblem("unavailable", "the database does not answer in time") from None
    body = {"status": "ready", "head": head, "tail": services.tail.position}
    return json_response(services, body, head)

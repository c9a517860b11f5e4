"""`/healthz`, `/readyz` and `/metrics`: for those who watch the server."""

import asyncio

import orjson
from fastapi import APIRouter, Response

from application.concurrency.tasks import with_timeout
from application.queries.access import require_scope, require_whole_log
from application.telemetry.measurements import measure
from infrastructure.inbound.http.requests.caller import (
    ByCaller,
    InjectedServices,
    json_response,
)
from infrastructure.inbound.http.responses.described import endpoint_responses
from infrastructure.inbound.http.responses.metrics_text import MEDIA_TYPE, metrics_text
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


@router.get(
    "/metrics",
    operation_id="getMetrics",
    summary="Metrics",
    description=(
        "Counts and durations in the text format of Prometheus: what this server has recorded and"
        " answered since it started, and how much of the whole log is open now. It needs a token"
        " with the scope `read` and the sessions `*`. While the database does not answer,"
        " `spawnlog_database_up` is 0 and what is counted there is left out."
    ),
    responses={
        **endpoint_responses(),
        200: {
            "description": "The metrics",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        },
    },
    response_class=Response,
)
async def metrics(services: InjectedServices, caller: ByCaller) -> Response:
    """What the server measures."""
    require_scope(caller, "read")
    require_whole_log(caller)
    measured = await measure(services.measurements)
    # The first time a library is loaded, and each time some hundred lines are written.
    text = await asyncio.to_thread(metrics_text, measured)
    return Response(text, headers={"Content-Type": MEDIA_TYPE})

"""`/healthz`, `/readyz`, `/metrics` and `/v1/log`: for those who watch the server and the log."""

import asyncio

import orjson
from fastapi import APIRouter, Request, Response

from application.commands import verify as commands
from application.concurrency.tasks import with_timeout
from application.ports.verifications import VERIFICATIONS_MAX
from application.queries.access import require_scope, require_whole_log
from application.queries.operation import Body
from application.queries.views.verification import (
    LogHeadView,
    VerificationStartView,
    VerificationStopView,
)
from application.telemetry.measurements import measure
from infrastructure.inbound.http.requests.bodies import read_body
from infrastructure.inbound.http.requests.caller import (
    AT_POSITION,
    ByCaller,
    InjectedServices,
    json_response,
    view_response,
)
from infrastructure.inbound.http.requests.parameters import AsOfParameter
from infrastructure.inbound.http.responses.described import BODY_PROBLEMS, endpoint_responses
from infrastructure.inbound.http.responses.metrics_text import MEDIA_TYPE, metrics_text
from infrastructure.inbound.http.responses.problems import HttpProblem
from infrastructure.inbound.http.schemas.answers import HealthAnswer, ReadinessAnswer

router = APIRouter()
ANSWER_SECONDS = 2.0
"""How long the database may take: who asks whether it is ready does not wait for long."""


@router.get(
    "/healthz",
    tags=["health"],
    operation_id="getHealth",
    response_model=HealthAnswer,
    summary="Alive",
    description="The process answers.",
    responses=endpoint_responses(needs_token=False),
    openapi_extra={"security": []},
)
async def healthz(request: Request) -> Response:
    """Alive."""
    body = {"status": "ok", "version": request.app.version}
    return Response(orjson.dumps(body), media_type="application/json")


@router.get(
    "/readyz",
    tags=["health"],
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
    tags=["health"],
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


@router.get(
    "/v1/log",
    tags=["log"],
    dependencies=AT_POSITION,
    operation_id="getLogHead",
    response_model=LogHeadView,
    summary="Where the log ends, and whether it was verified",
    description=(
        "The last event as of `at`, with the hash that chains the whole log up to it:"
        " `position:chainHash` is the head to note somewhere else, for `spawnlog log verify"
        f" --head`. The newest {VERIFICATIONS_MAX} verifications stand beside it, whether a request"
        " or a command began them, as they are now. Needs a token for the sessions `*`."
    ),
    responses=endpoint_responses(),
)
async def get_log_head(
    services: InjectedServices, caller: ByCaller, at: AsOfParameter = None
) -> Response:
    """The head."""
    return view_response(services, await commands.describe_log_head(services, caller, at=at))


@router.post(
    "/v1/log/verifications",
    tags=["log"],
    operation_id="startVerification",
    response_model=VerificationStartView,
    status_code=202,
    summary="Verify the log",
    description=(
        "Compares the whole log with its chain of hashes, and texts, transcripts and read tables"
        " with the log, as `spawnlog log verify` does: in processes beside the server, which read"
        " and change nothing. `GET /v1/log` says how far it is and what it found. There is one at a"
        " time for each log, over all its servers and commands: while one is under way this answers"
        " with that one, and `began` is false. It goes on when nobody asks, and ends with the"
        " server. Needs the scope `admin`."
    ),
    responses=endpoint_responses(*BODY_PROBLEMS, status=202, description="Under way"),
)
async def start_verification(
    request: Request, services: InjectedServices, caller: ByCaller
) -> Response:
    """Begin."""
    await read_body(request, Body)
    answer = await commands.start_verification(services, caller)
    return view_response(services, answer, status=202)


@router.post(
    "/v1/log/verifications/current/stop",
    tags=["log"],
    operation_id="stopVerification",
    response_model=VerificationStopView,
    summary="Stop verifying the log",
    description=(
        "The verification under way stops within some seconds, at whichever server or command it"
        " is; `spawnlog log verify --resume` goes on with it. Needs the scope `admin`."
    ),
    responses=endpoint_responses(*BODY_PROBLEMS),
)
async def stop_verification(
    request: Request, services: InjectedServices, caller: ByCaller
) -> Response:
    """Stop."""
    await read_body(request, Body)
    return view_response(services, await commands.stop_verification(services, caller))

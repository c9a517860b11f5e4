"""Runs that are executed outside: claimed, kept, told about and ended by their executor."""

from fastapi import APIRouter, Request, Response

from application.commands.control import require_service
from application.commands.external import executable_run
from application.execution.external import ReportedEnd
from application.ports.runtimes import TranscriptEntry, launch_object
from application.queries.views.view import Answer, View
from infrastructure.inbound.http.requests.bodies import read_body
from infrastructure.inbound.http.requests.caller import (
    ByCaller,
    InjectedServices,
    RunInPath,
    view_response,
)
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.described import (
    BODY_PROBLEMS,
    endpoint_responses,
    request_body_schema,
)
from infrastructure.inbound.http.schemas.answers import (
    ClaimedAnswer,
    EndedAnswer,
    HeartbeatAnswer,
    ReportedAnswer,
)
from infrastructure.inbound.http.schemas.external_runs import (
    REPORT_VALUES_MAX,
    ClaimBody,
    EndBody,
    HeartbeatBody,
    ReportBody,
)
from infrastructure.inbound.http.schemas.transcript import provided_entry

router = APIRouter(tags=["external runs"])
_EVERY_PROBLEM = ("not_found", "not_external", "claim_over", "run_over", *BODY_PROBLEMS)


@router.post(
    "/v1/runs/{runId}/claim",
    operation_id="claimRun",
    response_model=ClaimedAnswer,
    summary="Claim a run to execute it",
    description=(
        "For a run of an agent whose runtime is `external`, once it is queued and its lane has a"
        " place: it starts with the claim, and its time limit counts from there. The answer has all"
        " that the child is given. Repeated by the same executor while its lease holds it is"
        " answered the same; of two executors one is told `claimed_elsewhere`. Tokens: the one that"
        " spawned, or one with scope `worker`. A run that nobody claims within"
        " `spawnlog.externalClaimSeconds` ends as `error`."
    ),
    responses=endpoint_responses(*_EVERY_PROBLEM, "not_offered", "claimed_elsewhere", "erased"),
    openapi_extra=request_body_schema(ClaimBody, required=True),
)
async def claim_run(
    request: Request, services: InjectedServices, caller: ByCaller, runId: RunInPath
) -> Response:
    """Claim a run."""
    run_id = await executable_run(services, caller, runId)
    require_service(services)
    body, _ = await read_body(request, ClaimBody)
    claimed = await services.external.claim(run_id, body.executor, body.lease_seconds, caller.actor)
    launch = claimed.launch
    answer = ClaimedAnswer(
        run_id=run_id,
        epoch=claimed.epoch,
        lease_seconds=claimed.lease_seconds,
        url=launch.url,
        token=launch.token,
        # A command finds it in its environment.
        launch={**launch_object(launch), "traceparent": launch.traceparent},
    )
    return await _respond(services, answer)


@router.post(
    "/v1/runs/{runId}/heartbeat",
    operation_id="prolongClaim",
    response_model=HeartbeatAnswer,
    summary="Prolong a claim",
    description=(
        "Some three times a lease. A run whose executor gives no sign of life ends as `error`,"
        " `interrupted: …`; one that is past its time limit as `timeout`. When `stop` is set the"
        " lease is not prolonged: end what you execute, and report the end while it holds."
    ),
    responses=endpoint_responses(*_EVERY_PROBLEM),
    openapi_extra=request_body_schema(HeartbeatBody, required=True),
)
async def prolong_claim(
    request: Request, services: InjectedServices, caller: ByCaller, runId: RunInPath
) -> Response:
    """Prolong a claim."""
    run_id = await executable_run(services, caller, runId)
    body, _ = await read_body(request, HeartbeatBody)
    beat = await services.external.heartbeat(run_id, body.epoch, body.lease_seconds)
    answer = HeartbeatAnswer(
        run_id=run_id,
        stop=beat.stop,
        by=beat.by,
        reason=beat.reason,
        lease_seconds=beat.lease_seconds,
    )
    return await _respond(services, answer)


@router.post(
    "/v1/runs/{runId}/transcript",
    operation_id="reportTranscript",
    response_model=ReportedAnswer,
    summary="Report what the child said",
    description=(
        "As it comes, in order. What the child was told is there already. A repeat is not stored"
        " twice, and a gap is refused with the number that is next. It is no sign of life: that is"
        " the heartbeat alone."
    ),
    responses=endpoint_responses(*_EVERY_PROBLEM, "transcript_gap"),
    openapi_extra=request_body_schema(ReportBody, required=True),
)
async def report_transcript(
    request: Request, services: InjectedServices, caller: ByCaller, runId: RunInPath
) -> Response:
    """Write entries down."""
    run_id = await executable_run(services, caller, runId)
    body, _ = await read_body(request, ReportBody, values_max=REPORT_VALUES_MAX)
    entries = [TranscriptEntry(one.kind, provided_entry(one).body) for one in body.entries]
    following = await services.external.report(run_id, body.epoch, body.first, entries)
    return await _respond(services, ReportedAnswer(run_id=run_id, next=following))


@router.post(
    "/v1/runs/{runId}/end",
    operation_id="endRun",
    response_model=EndedAnswer,
    summary="Report the end of a run",
    description=(
        "It is announced like any other. Repeated it is answered the same. `run_over` when the run"
        " has ended otherwise meanwhile: what is reported then is not recorded."
    ),
    responses=endpoint_responses(*_EVERY_PROBLEM, "erased"),
    openapi_extra=request_body_schema(EndBody, required=True),
)
async def end_run(
    request: Request, services: InjectedServices, caller: ByCaller, runId: RunInPath
) -> Response:
    """End a run."""
    run_id = await executable_run(services, caller, runId)
    body, _ = await read_body(request, EndBody)
    usages = None if body.usage is None else tuple(one.entry() for one in body.usage)
    end = ReportedEnd(outcome=body.outcome, result=body.result, error=body.error, usages=usages)
    ended = await services.external.end(run_id, body.epoch, end, caller.actor)
    assert ended.outcome is not None
    return await _respond(services, EndedAnswer(run_id=run_id, outcome=ended.outcome))


async def _respond(services: Services, view: View) -> Response:
    return view_response(services, Answer(view, await services.work.log.head()))

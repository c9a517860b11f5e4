"""`PUT /v1/sessions/{key}/transcript`: what was said in a session that lives elsewhere."""

from fastapi import APIRouter, Request, Response

from application.commands.context import CommandResponse
from application.log.event_log import Reservation, StoredAnswer
from application.queries.access import require_scope
from application.queries.errors import invalid_value
from application.queries.session_reference import resolve_target_session
from application.session.transcript import (
    EntryTooLarge,
    SubmittedTranscript,
    TranscriptIntake,
)
from infrastructure.inbound.http.requests.bodies import read_body
from infrastructure.inbound.http.requests.caller import (
    ByCaller,
    InjectedServices,
    KeyInPath,
    json_response,
)
from infrastructure.inbound.http.requests.replies import respond_once
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.described import (
    BODY_PROBLEMS,
    KEY_PROBLEMS,
    endpoint_responses,
    request_body_schema,
)
from infrastructure.inbound.http.schemas.answers import TranscriptProvidedAnswer
from infrastructure.inbound.http.schemas.transcript import (
    VALUES_MAX,
    TranscriptBody,
    provided_entries,
)

router = APIRouter(tags=["sessions"])


@router.put(
    "/v1/sessions/{key}/transcript",
    operation_id="provideTranscript",
    response_model=TranscriptProvidedAnswer,
    summary="Tell what was said in a session",
    description=(
        "For a requester that lives elsewhere: a child that is spawned with `context` `fork` begins"
        " with what was told last before its spawn. The whole conversation is told each time, and"
        " takes the place of the one before; the same again changes nothing and records nothing."
        " `tokens` is `totalTokens`, else the last usage entry or a quarter of the bytes, whichever"
        " is more. A session that was spawned here is told by nobody: its transcript is its run's."
    ),
    responses=endpoint_responses(
        "session_closed",
        "transcript_is_kept_here",
        "too_much_told",
        "erased",
        *BODY_PROBLEMS,
        *KEY_PROBLEMS,
    ),
    openapi_extra=request_body_schema(TranscriptBody, required=True),
)
async def provide_transcript(
    request: Request, services: InjectedServices, caller: ByCaller, key: KeyInPath
) -> Response:
    """Keep a transcript."""
    require_scope(caller, "spawn")
    session = await resolve_target_session(services, caller, key)
    body, raw = await read_body(request, TranscriptBody, values_max=VALUES_MAX)
    submitted = SubmittedTranscript(
        session_key=session.session_key,
        display_key=session.display_key,
        entries=provided_entries(body),
        total_tokens=body.total_tokens,
    )

    async def provide(reservation: Reservation | None) -> CommandResponse:
        try:
            response = await TranscriptIntake(services.work).provide(
                submitted, caller.actor, reservation
            )
        except EntryTooLarge as large:
            raise invalid_value(f"/entries/{large.index}", str(large)) from None
        return CommandResponse(response.answer, response.position)

    return await respond_once(request, services, caller, raw, provide, _response)


def _response(_: Request, services: Services, answer: StoredAnswer, position: int) -> Response:
    return json_response(services, {**answer.body, "position": position}, position)

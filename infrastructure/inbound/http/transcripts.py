"""`PUT /v1/sessions/{key}/transcript`: what was said in a session that lives elsewhere."""

from fastapi import APIRouter, Request, Response

from application.ports.event_log import AlreadyReserved, Answer
from application.providing_transcripts import (
    EntryTooLarge,
    ProvidingTranscripts,
    ToldTranscript,
    TooMuchTold,
)
from domain.refusals import SessionIsClosed
from domain.session.decide import TranscriptIsKeptHere
from infrastructure.inbound.http import examples
from infrastructure.inbound.http.bodies import read_body
from infrastructure.inbound.http.described import (
    BODY_PROBLEMS,
    KEY_PROBLEMS,
    problems,
    success,
    takes,
)
from infrastructure.inbound.http.doors import Doors
from infrastructure.inbound.http.problems import Problem
from infrastructure.inbound.http.replays import first_answer_again
from infrastructure.inbound.http.requests import (
    ByCaller,
    InDoors,
    KeyInPath,
    answer,
    must,
    reservation_of,
    wrong_at,
)
from infrastructure.inbound.http.transcript_body import VALUES_MAX, TranscriptBody, told_entries
from infrastructure.inbound.http.written_sessions import written_session

router = APIRouter(tags=["sessions"])


@router.put(
    "/v1/sessions/{key}/transcript",
    operation_id="provideTranscript",
    summary="Tell what was said in a session",
    description=(
        "For a requester that lives elsewhere: a child that is spawned with `context` `fork` begins"
        " with what was told last before its spawn. The whole conversation is told each time, and"
        " takes the place of the one before; the same again changes nothing and records nothing."
        " `tokens` is `totalTokens`, else the last usage entry or a quarter of the bytes, whichever"
        " is more. A session that was spawned here is told by nobody: its transcript is its run's."
    ),
    responses={
        **success(examples.TRANSCRIPT_PROVIDED),
        **problems(
            "session_closed",
            "transcript_is_kept_here",
            "too_much_told",
            "erased",
            *BODY_PROBLEMS,
            *KEY_PROBLEMS,
        ),
    },
    openapi_extra=takes(TranscriptBody, examples.PROVIDED_TRANSCRIPT, required=True),
)
async def provide_transcript(
    request: Request, doors: InDoors, caller: ByCaller, key: KeyInPath
) -> Response:
    """Keep a transcript."""
    must(caller, "spawn")
    session = await written_session(doors, caller, key)
    body, raw = await read_body(request, TranscriptBody, values_max=VALUES_MAX)
    told = ToldTranscript(
        session_key=session.session_key,
        display_key=session.display_key,
        entries=told_entries(body),
        total_tokens=body.total_tokens,
    )
    reservation = reservation_of(request, caller, raw)
    try:
        provided = await ProvidingTranscripts(doors.work).provide(told, caller.actor, reservation)
    except AlreadyReserved as reserved:
        assert reservation is not None
        return await first_answer_again(
            reserved, reservation, lambda one, _: _told_before(doors, one)
        )
    except EntryTooLarge as large:
        raise wrong_at(f"/entries/{large.index}", str(large)) from None
    except TranscriptIsKeptHere as kept:
        raise Problem("transcript_is_kept_here", str(kept)) from None
    except TooMuchTold as much:
        raise Problem("too_much_told", str(much)) from None
    except SessionIsClosed as closed:
        raise Problem("session_closed", str(closed)) from None
    return _response(doors, provided.answer, provided.position)


async def _told_before(doors: Doors, told: Answer) -> Response:
    return _response(doors, told, await doors.work.log.head())


def _response(doors: Doors, told: Answer, position: int) -> Response:
    return answer(doors, {**told.body, "position": position}, position)

"""Verify the log: show its head and past verifications, start one, stop one."""

from application.commands.control import require_service
from application.commands.services import CommandServices
from application.ports.verifications import VERIFICATIONS_MAX
from application.queries.access import Caller, require_whole_log
from application.queries.as_of import resolve_as_of
from application.queries.command import Column, Command
from application.queries.operation import ReadAsOf, operation
from application.queries.views.verification import (
    LogHeadView,
    VerificationStartView,
    VerificationStopView,
    verification_view,
)
from application.queries.views.view import Answer


@operation(
    "GET",
    "/v1/log",
    name="getLogHead",
    tag="log",
    scope="read",
    summary="Where the log ends, and whether it was verified",
    description=(
        "The last event as of `at`, with the hash that chains the whole log up to it:"
        " `position:chainHash` is the head to note somewhere else, for `spawnlog log verify"
        f" --head`. The newest {VERIFICATIONS_MAX} verifications stand beside it, whether a request"
        " or a command began them, as they are now. Needs a token for the sessions `*`."
    ),
    command=Command(
        "log head",
        "Show where the log ends, and what verifications found.\n\n"
        "The head is printed as `log verify --head` takes it. With --at the head is as it was then;"
        " the verifications are those of now.",
        fields=(
            Column("log", "logId"),
            Column("head", form="head"),
            Column("recorded", "recordedAt", "instant"),
        ),
    ),
)
async def get_log_head(
    services: CommandServices, caller: Caller, query: ReadAsOf
) -> Answer[LogHeadView]:
    """Return the end of the log, now or as of a moment, and its verifications."""
    require_whole_log(caller)
    moment = await resolve_as_of(services, caller, query.at)
    log = services.work.log
    chain_hash = await services.verifications.chain_hash_at(moment.position)
    view = LogHeadView(
        log_id=log.log_id,
        position=moment.position,
        recorded_at=await log.recorded_at(moment.position),
        chain_hash=chain_hash.hex() if chain_hash is not None else None,
        verifications=[
            verification_view(verification)
            for verification in await services.verifications.latest()
        ],
    )
    return Answer(view, moment.position)


@operation(
    "POST",
    "/v1/log/verifications",
    name="startVerification",
    tag="log",
    scope="admin",
    summary="Verify the log",
    description=(
        "Compares the whole log with its chain of hashes, and texts, transcripts and read tables"
        " with the log, as `spawnlog log verify` does: in processes beside the server, which read"
        " and change nothing. `GET /v1/log` says how far it is and what it found. There is one at a"
        " time for each log, over all its servers and commands: while one is under way this answers"
        " with that one, and `began` is false. It goes on when nobody asks, and ends with the"
        " server. Needs the scope `admin`."
    ),
    status=202,
    status_description="Under way",
    command="log verify verifies in its own process",
)
async def start_verification(
    services: CommandServices, caller: Caller
) -> Answer[VerificationStartView]:
    """Start a verification in the background, unless one is in progress."""
    require_whole_log(caller)
    require_service(services)
    began = await services.verifications.start(caller.actor.name)
    newest, *_ = await services.verifications.latest()
    view = VerificationStartView(began=began, verification=verification_view(newest))
    return Answer(view, await services.work.log.head())


@operation(
    "POST",
    "/v1/log/verifications/current/stop",
    name="stopVerification",
    tag="log",
    scope="admin",
    essential=True,
    summary="Stop verifying the log",
    description=(
        "The verification under way stops within some seconds, at whichever server or command it"
        " is; `spawnlog log verify --resume` goes on with it. Needs the scope `admin`."
    ),
    command="log verify verifies in its own process",
)
async def stop_verification(
    services: CommandServices, caller: Caller
) -> Answer[VerificationStopView]:
    """Ask the verification in progress to stop, in whichever server or command it runs."""
    require_whole_log(caller)
    stopping = await services.verifications.request_stop(caller.actor.name)
    latest = await services.verifications.latest()
    view = VerificationStopView(
        was_under_way=stopping,
        verification=verification_view(latest[0]) if latest else None,
    )
    return Answer(view, await services.work.log.head())

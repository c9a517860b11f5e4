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
    summary="Get the head of the log, and the results of verifications",
    description=(
        "Returns the last event as of `at`, with the chain hash of the log up to it. Keep"
        " `position:chainHash` elsewhere as the head for `spawnlog log verify --head`. Includes"
        f" the newest {VERIFICATIONS_MAX} verifications in their current state, started by"
        " requests or commands. Needs a token for the sessions `*`."
    ),
    command=Command(
        "log head",
        "Show the head of the log, and the results of verifications.\n\nThe head has the form"
        " that `log verify --head` takes. With --at, it is the head at that moment; the"
        " verifications are current.",
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
    summary="Start a verification of the log",
    description=(
        "Compares the whole log with its hash chain, and texts, transcripts and read tables"
        " with the log, as `spawnlog log verify` does. It runs in separate read-only processes."
        " `GET /v1/log` returns the progress and the result. Each log has at most one"
        " verification at a time, over all servers and commands: if one is in progress, it is"
        " returned and `began` is false. It continues in the background until it is done or the"
        " server ends. Needs the scope `admin`."
    ),
    status=202,
    status_description="In progress",
    command="log verify runs in its own process",
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
    summary="Stop the running verification of the log",
    description=(
        "The verification in progress stops within some seconds, in whichever server or command"
        " it runs. `spawnlog log verify --resume` continues it. Needs the scope `admin`."
    ),
    command="log verify runs in its own process",
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

"""Verifying the log: where it ends, what verifications of it have found, one begun, one stopped."""

from application.commands.control import require_service
from application.commands.services import CommandServices
from application.queries.access import Caller, require_scope, require_whole_log
from application.queries.as_of import resolve_as_of
from application.queries.views.verification import (
    LogHeadView,
    VerificationStartView,
    VerificationStopView,
    verification_view,
)
from application.queries.views.view import Answer


async def describe_log_head(
    services: CommandServices, caller: Caller, *, at: str | None = None
) -> Answer[LogHeadView]:
    """The end of the log, now or as of a moment, and the verifications of it."""
    require_scope(caller, "read")
    require_whole_log(caller)
    moment = await resolve_as_of(services, caller, at)
    log = services.work.log
    chain_hash = await services.verifications.chain_hash_at(moment.position)
    view = LogHeadView(
        log_id=log.log_id,
        position=moment.position,
        recorded_at=await log.recorded_at(moment.position),
        chain_hash=chain_hash.hex() if chain_hash is not None else None,
        verifications=[verification_view(one) for one in await services.verifications.latest()],
    )
    return Answer(view, moment.position)


async def start_verification(
    services: CommandServices, caller: Caller
) -> Answer[VerificationStartView]:
    """Begin one beside the servers; when one is under way there is no second one."""
    require_scope(caller, "admin")
    require_whole_log(caller)
    require_service(services)
    began = await services.verifications.start(caller.actor.name)
    newest, *_ = await services.verifications.latest()
    view = VerificationStartView(began=began, verification=verification_view(newest))
    return Answer(view, await services.work.log.head())


async def stop_verification(
    services: CommandServices, caller: Caller
) -> Answer[VerificationStopView]:
    """Ask the one under way to stop, whichever server or command is at it."""
    require_scope(caller, "admin")
    require_whole_log(caller)
    stopping = await services.verifications.request_stop(caller.actor.name)
    latest = await services.verifications.latest()
    view = VerificationStopView(
        was_under_way=stopping,
        verification=verification_view(latest[0]) if latest else None,
    )
    return Answer(view, await services.work.log.head())

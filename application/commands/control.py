"""Checks before a command: which runs and sessions the caller may control."""

from application.commands.services import CommandServices
from application.queries.access import Caller, require_scope
from application.queries.as_of import resolve_as_of
from application.queries.errors import QueryError
from application.queries.runs import visible_run
from application.queries.session_reference import UUID_TEXT, unknown_session
from domain.plan.tools import CONTROL_TOOL
from domain.run.state import Run
from domain.session.state import Session
from domain.spawn.request import TASK_BYTES_MAX


async def require_control(services: CommandServices, caller: Caller, about: str) -> None:
    """Refuse a caller that may not control other sessions.

    If a child's tool policy denies it, record the denial with the run or session that it is about.
    """
    if caller.run_id is not None and not caller.may("control"):
        known = about if UUID_TEXT.fullmatch(about) or about.startswith("agent:") else None
        await services.tool_policy.require_permission(
            caller.run_id, CONTROL_TOOL, caller.actor, known
        )
    require_scope(caller, "control")


def require_service(services: CommandServices) -> None:
    """Refuse while the service is stopping, because it could not finish the work."""
    if services.closing():
        raise QueryError("unavailable", "the server is stopping; retry in a moment")


async def controlled_run(services: CommandServices, caller: Caller, run_id: str, verb: str) -> Run:
    """Return a run below the caller's session; refuse the caller's own."""
    run = await visible_run(services, caller, run_id, await resolve_as_of(services, caller, None))
    if not await services.access.covers_run(caller, run) or caller.run_id == run.run_id:
        raise only_descendants(verb)
    return run


async def addressed_run(
    services: CommandServices, caller: Caller, run_id: str, message: str, *, steers: bool
) -> Run:
    """Return the run whose session a message is for; refuse a message that is too long."""
    if len(message.encode()) > TASK_BYTES_MAX:
        raise QueryError("too_large", f"a message may have at most {TASK_BYTES_MAX} bytes")
    if steers and run_id == str(caller.run_id):
        raise QueryError("not_permitted", "Subagents cannot steer themselves.")
    return await controlled_run(services, caller, run_id, "send to")


async def controlled_session(
    services: CommandServices, caller: Caller, spelling: str, session_key: str, verb: str
) -> Session:
    """Return the caller's session or one below it; refuse the session of a child itself.

    `spelling` is how the caller named the session.
    """
    session = await services.work.registry.session(session_key)
    if session is None or not await services.access.covers_session(caller, session_key):
        raise await unknown_session(services, caller, spelling)
    if caller.run_id is not None and caller.run_id == session.run_id:
        raise only_descendants(verb)
    return session


def only_descendants(verb: str) -> QueryError:
    """Return the error for a run or session that is not below the caller's session."""
    return QueryError("not_permitted", f"this token may {verb} only the descendants of its session")

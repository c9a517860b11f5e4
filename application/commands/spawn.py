"""Who may ask for a spawn: what is asked before it is admitted, whichever way it comes in."""

from application.commands.control import require_service
from application.commands.services import CommandServices
from application.queries.access import (
    Caller,
    require_agent_access,
    require_scope,
    require_session_access,
)
from application.spawn.request import SpawnRequest
from domain.configuration.configuration import Configuration


def require_spawner(services: CommandServices, caller: Caller) -> None:
    """Whether the caller may spawn at all, and is served now."""
    require_scope(caller, "spawn")
    require_service(services)


def require_requester(caller: Caller, spawn: SpawnRequest, configuration: Configuration) -> None:
    """Whether the caller may spawn for this session, and as its agent."""
    require_session_access(caller, spawn.requester_key)
    if spawn.asserts_agent:
        require_agent_access(caller, spawn.requester_agent_id, configuration)

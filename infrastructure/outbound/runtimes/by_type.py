"""Dispatch of launches to the runtimes of this server, by configured type."""

from collections.abc import Mapping

from application.ports.runtimes import AgentRuntimes, Launch, LaunchError, RuntimeSession
from domain.configuration.runtimes import Runtime


class RuntimesByType:
    """Dispatcher to the runtime of each type."""

    def __init__(self, by_type: Mapping[str, AgentRuntimes]) -> None:
        self._by_type = dict(by_type)

    def is_in_process(self, runtime: Runtime) -> bool:
        """Return the answer of the runtime; False if this server does not run the type."""
        served = self._by_type.get(runtime.type)
        return served is not None and served.is_in_process(runtime)

    async def open(self, launch: Launch) -> RuntimeSession:
        """Open a session.

        Raises:
            LaunchError: The runtime cannot launch, or this server does not run its type.
        """
        served = self._by_type.get(launch.runtime.type)
        if served is None:
            raise LaunchError(
                "not_executable",
                f'the runtime of agent {launch.agent_id} has type "{launch.runtime.type}", which'
                f" this server does not run; it runs {', '.join(sorted(self._by_type))}",
            )
        return await served.open(launch)

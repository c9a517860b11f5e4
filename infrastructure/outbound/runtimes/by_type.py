"""The runtimes of this server, by the type that the configuration names."""

from collections.abc import Mapping

from application.ports.runtimes import AgentRuntimes, CannotLaunch, Launch, RuntimeSession
from domain.configuration.runtimes import Runtime


class RuntimesByType:
    """Hands each launch to what runs its type."""

    def __init__(self, by_type: Mapping[str, AgentRuntimes]) -> None:
        self._by_type = dict(by_type)

    def is_in_process(self, runtime: Runtime) -> bool:
        """As what runs its type says; False for a type that nothing here runs."""
        served = self._by_type.get(runtime.type)
        return served is not None and served.is_in_process(runtime)

    async def open(self, launch: Launch) -> RuntimeSession:
        """Raises `CannotLaunch`, also for a type that nothing here runs."""
        served = self._by_type.get(launch.runtime.type)
        if served is None:
            raise CannotLaunch(
                "not_executable",
                f'the runtime of agent {launch.agent_id} has type "{launch.runtime.type}", which'
                f" this server does not run; it runs {', '.join(sorted(self._by_type))}",
            )
        return await served.open(launch)

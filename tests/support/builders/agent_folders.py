"""Folders of agents with files of credentials in them, and who reads them."""

import json
from pathlib import Path
from typing import Any

from application.log.envelope import Actor
from application.ports.configurations import PinnedConfiguration
from domain.plan.credentials import FoundCredentials
from infrastructure.outbound.credentials.agent_credentials import AgentCredentials
from infrastructure.outbound.credentials.auth_profiles import FILE_NAME
from tests.support.builders.loaded_configurations import load_values
from tests.support.servers.running_log import RunningLog
from tests.support.servers.server_configurations import ServerConfigurations

COMMAND = {"type": "command", "command": ["true"]}


def api_key(provider: str, key: object, **more: Any) -> dict[str, Any]:
    """A profile of type `api_key`."""
    return {"type": "api_key", "provider": provider, "key": key, **more}


def write_profiles(folder: Path, profiles: object, mode: int = 0o600) -> Path:
    """The file of a folder, which is made."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / FILE_NAME
    text = profiles if isinstance(profiles, str) else json.dumps({"profiles": profiles})
    path.write_text(text, "utf-8")
    path.chmod(mode)
    return path


class AgentFolders:
    """Agents `main` and `helper`, whose runtime is a command unless one says otherwise, and
    `player`, which plays back. `now` is what time it is."""

    def __init__(self, running: RunningLog, folder: Path) -> None:
        self.now = 1_000.0
        self.agents = folder / "agents"
        self._configurations = ServerConfigurations(running, folder / "workspaces")
        self._folder = folder
        self.credentials = AgentCredentials(
            self._configurations.files, self.agents, now=lambda: self.now
        )

    async def configured(
        self, env: dict[str, Any] | None = None, **helper: Any
    ) -> PinnedConfiguration:
        """Activate and return a revision with this helper and this `env` section."""
        listed = [
            {"id": "main"},
            {"id": "helper", **helper},
            {"id": "player", "runtime": {"type": "scripted"}},
        ]
        values: dict[str, Any] = {"agents": {"defaults": {"runtime": COMMAND}, "list": listed}}
        if env is not None:
            values["env"] = env
        loaded = load_values(values, folder=self._folder)
        await self._configurations.activate(loaded, Actor(kind="system"))
        return self._configurations.current()

    async def found(self, pinned: PinnedConfiguration, agent_id: str) -> FoundCredentials:
        """What there is for the children of an agent."""
        return await self.credentials.found(pinned, pinned.configuration.effective_agent(agent_id))

    def write(self, agent_id: str, profiles: object, mode: int = 0o600) -> Path:
        """The file of an agent that was given no folder."""
        return write_profiles(self.agents / agent_id / "agent", profiles, mode)

"""Calls of hooks of one configuration, without a log."""

from dataclasses import dataclass
from typing import Any

import pytest

from application.ports.configurations import PinnedConfiguration
from application.ports.hooks import HookAnswer, HookError
from domain.delivery.hook_payloads import HookCall
from infrastructure.outbound.configuration.load import LoadedConfiguration
from infrastructure.outbound.hooks.http_hooks import HttpHooks
from tests.support.builders.configurations import load_values
from tests.support.servers.hook_server import HookServer

CALL = HookCall("subagentEnded", "subagentEnded", "a-run:subagentEnded", {"runId": "a"}, {"b": "c"})
SECRET = "canary-of-a-header"


@dataclass(frozen=True)
class OneFile:
    """The configurations of a server that has read one file."""

    loaded: LoadedConfiguration

    def file_of(self, _: PinnedConfiguration) -> LoadedConfiguration:
        return self.loaded


class Asked:
    """Hooks of one configuration."""

    def __init__(
        self, hook: dict[str, Any], others: dict[str, Any] | None = None, **limits: Any
    ) -> None:
        hooks = {"subagentEnded": hook, **(others or {})}
        loaded = load_values({"spawnlog": {"hooks": hooks}})
        self.pinned = PinnedConfiguration(1, loaded.configuration, loaded.stored)
        self.hooks = HttpHooks(OneFile(loaded), **limits)

    async def ask(self, call: HookCall = CALL) -> HookAnswer:
        try:
            return await self.hooks.ask(self.pinned, call)
        finally:
            await self.hooks.aclose()

    async def threw(self) -> HookError:
        with pytest.raises(HookError) as caught:
            await self.ask()
        return caught.value


def asked(server: HookServer, path: str = "/there", **more: Any) -> Asked:
    return Asked({"url": server.url + path, **more})

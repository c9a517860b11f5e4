"""Hooks in this process that answer as a test says, and work on a log that calls them."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from application.log.envelope import SYSTEM
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import PinnedConfiguration
from application.ports.hooks import HookAnswer, HookError
from domain.delivery.hook_payloads import HookCall
from infrastructure.outbound.identity.identifiers import RandomIdentities
from infrastructure.outbound.read_model.contents import PostgresContents
from infrastructure.outbound.read_model.registry import PostgresRegistry
from tests.support.builders.configurations import load_values
from tests.support.servers.running_log import RunningLog
from tests.support.servers.server_configurations import ServerConfigurations

URL = "https://hooks.example/"
Says = Mapping[str, object] | None


class ScriptedHooks:
    """Implements `Hooks`. Raises or returns the next item, repeating the last one; without items
    the answers are empty.
    """

    def __init__(self, *replies: Says | HookError) -> None:
        self._replies = list(replies) or [None]
        self.calls: list[HookCall] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def ask(self, _: PinnedConfiguration, call: HookCall) -> HookAnswer:
        """Note the call, and raise or return the next item."""
        self.calls.append(call)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        await self.may_answer.wait()
        if isinstance(reply, HookError):
            raise reply
        return HookAnswer(200, reply)


async def work_with_hooks(
    running: RunningLog,
    folder: Path,
    *names: str,
    session: Any = None,
    announce: Any = None,
    **more: Any,
) -> UnitOfWork:
    """Work on a log whose first revision has these hooks."""
    contents, identities = PostgresContents(running.pool), RandomIdentities()
    configurations = ServerConfigurations(running, folder)
    hooks = {name: {"url": URL + name} for name in names}
    values = {
        "agents": {"defaults": {"runtime": {"type": "scripted"}}},
        "session": session or {},
        "spawnlog": {"hooks": {**hooks, **more}, "announce": announce or {}},
    }
    assert await configurations.activate(load_values(values, folder=folder), SYSTEM) == 1
    return UnitOfWork(
        running.log, identities, PostgresRegistry(running.pool), contents, configurations
    )

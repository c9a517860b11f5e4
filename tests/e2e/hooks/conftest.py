"""Server of this folder: children in threads that hooks bind."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked import ATTACHING, BOUND, asking_and_telling, hooked, talkers
from tests.support.servers.server import Server, serving

SLACK = {
    "threadBindings": {"defaultSpawnContext": "isolated"},
    "accounts": {"ours": {"threadBindings": {"defaultSpawnContext": "fork"}}},
}
CHANNELS = {"quiet": {"threadBindings": {"spawnSessions": False}}, "slack": SLACK}


@pytest.fixture(scope="package")
def one_outside() -> Iterator[HookServer]:
    with HookServer() as server:
        yield server


@pytest.fixture(scope="package")
def one_server(databases: Databases, one_outside: HookServer) -> Iterator[Server]:
    hooks = asking_and_telling(one_outside, headers={"X-Own": "known"})

    def config(folder: Path) -> dict[str, Any]:
        return hooked(folder, hooks, *talkers(folder), tools=ATTACHING, channels=CHANNELS)

    with serving(databases, config, dies=True) as running:
        yield running


@pytest.fixture
def outside(one_outside: HookServer) -> Iterator[HookServer]:
    """Yield the hook server, which binds every thread and has no calls yet."""
    one_outside.forget()
    one_outside.replies("subagentSpawning", Reply(body=BOUND))
    yield one_outside
    one_outside.let_go()


@pytest.fixture
def server(one_server: Server, outside: HookServer) -> Server:
    """Return the server, running whatever the previous test did to it."""
    one_server.ensure_running()
    return one_server

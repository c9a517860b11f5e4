"""The server that cases ask, started for the first of them."""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.support.http.mcp import McpCaller
from tests.support.servers.configurations import agent, command, configuration
from tests.support.servers.http_server import HOLDING, Gates, House
from tests.support.servers.server import Server

_OPEN = ExitStack()
_HOUSES: list[House] = []


def case_house() -> House:
    """Its leaves have the tool `subagents`, so that it can tell them what they may not."""
    if not _HOUSES:
        folder = Path(_OPEN.enter_context(tempfile.TemporaryDirectory(prefix="cases-")))
        folder.chmod(0o755)
        gates = Gates(folder / "gates")
        gates.folder.mkdir(mode=0o777)
        server = Server(folder / "data", _configuration(gates))
        _OPEN.enter_context(server)
        _HOUSES.append(House(server, gates, {}))
    return _HOUSES[0]


def configured(**subagents: Any) -> None:
    """From now on its children have these defaults beside its own."""
    house = case_house()
    assert isinstance(house.server, Server)
    house.server.reload(_configuration(house.gates, **subagents))


def _configuration(gates: Gates, **subagents: Any) -> dict[str, Any]:
    config = configuration(
        agent(default=True),
        agent("holder", command("sh", "-c", HOLDING.format(folder=gates.folder))),
        maxSpawnDepth=2,
        maxConcurrent=20,
        **subagents,
    )
    config["agents"]["defaults"]["subagents"]["allowAgents"] = ["main", "holder"]
    config["tools"] = {"subagents": {"tools": {"alsoAllow": ["subagents"]}}}
    return config


def caller_of(key: str) -> McpCaller:
    """The administrator, as a session."""
    server = case_house().server
    return McpCaller(server.url, server.token, session=key)


def child_of(token: str) -> McpCaller:
    """A child."""
    return McpCaller(case_house().server.url, token)


def close() -> None:
    """End the server, if one was started."""
    _HOUSES.clear()
    _OPEN.close()

"""The server that cases ask, started for the first of them."""

import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.support.http.mcp import McpCaller
from tests.support.servers.http_server import HOLDING, Gates, House
from tests.support.servers.running_server import (
    RunningServer,
    command,
    configuration,
    scripted,
)

_OPEN = ExitStack()
_HOUSES: list[House] = []


def case_house() -> House:
    """Its leaves have the tool `subagents`, so that it can tell them what they may not."""
    if not _HOUSES:
        folder = Path(_OPEN.enter_context(tempfile.TemporaryDirectory(prefix="cases-")))
        folder.chmod(0o755)
        gates = Gates(folder / "gates")
        gates.folder.mkdir(mode=0o777)
        config = configuration(
            {**scripted(), "default": True},
            command("holder", "sh", "-c", HOLDING.format(folder=gates.folder)),
            maxSpawnDepth=2,
            maxConcurrent=20,
        )
        config["tools"] = {"subagents": {"tools": {"alsoAllow": ["subagents"]}}}
        server = RunningServer(folder / "data", config)
        _OPEN.enter_context(server)
        _HOUSES.append(House(server, gates, {}))
    return _HOUSES[0]


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

"""The server for cases, started for the first of them."""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.support.http.mcp import McpCaller
from tests.support.servers.child_programs import holder
from tests.support.servers.configurations import agent, configuration
from tests.support.servers.server import Server

_OPEN = ExitStack()
_SERVERS: list[Server] = []


def case_server() -> Server:
    """Return the server. Its leaf children have the tool `subagents`, whose refusals cases read."""
    if not _SERVERS:
        folder = Path(_OPEN.enter_context(tempfile.TemporaryDirectory(prefix="cases-")))
        folder.chmod(0o755)
        notes = folder / "notes"
        notes.mkdir(mode=0o777)
        _SERVERS.append(_OPEN.enter_context(Server(folder / "data", _configuration(notes))))
    return _SERVERS[0]


def configured(**subagents: Any) -> None:
    """Let its children have these defaults beside its own from now on."""
    server = case_server()
    server.reload(_configuration(server.folder, **subagents))


def _configuration(notes: Path, **subagents: Any) -> dict[str, Any]:
    config = configuration(
        agent(default=True),
        holder(notes),
        maxSpawnDepth=2,
        maxConcurrent=20,
        **subagents,
    )
    config["agents"]["defaults"]["subagents"]["allowAgents"] = ["main", "holder"]
    config["tools"] = {"subagents": {"tools": {"alsoAllow": ["subagents"]}}}
    return config


def caller_of(key: str) -> McpCaller:
    """Return an MCP caller with the administrator's token, for a session."""
    server = case_server()
    return McpCaller(server.url, server.token, session=key)


def child_of(token: str) -> McpCaller:
    """Return an MCP caller with a child's token."""
    return McpCaller(case_server().url, token)


def close() -> None:
    """End the server, if one was started."""
    _SERVERS.clear()
    _OPEN.close()

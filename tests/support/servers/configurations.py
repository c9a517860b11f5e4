"""The one way to write a configuration for a server of a test.

configuration(agent("main", default=True), agent("echo", shell("cat")), maxSpawnDepth=2)
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from domain.configuration.agents import SubagentDefaults
from domain.configuration.settings import Settings

SUBAGENT_SETTINGS = frozenset(
    field.alias or name for name, field in SubagentDefaults.model_fields.items()
)
SERVER_SETTINGS = frozenset(field.alias or name for name, field in Settings.model_fields.items())


def agent(
    agent_id: str = "main", runtime: Mapping[str, Any] | None = None, **section: Any
) -> dict[str, Any]:
    """Return an agent with a runtime, by default `scripted()`. `section` has its other keys."""
    return {"id": agent_id, "runtime": dict(runtime or scripted()), **section}


def scripted(**runtime: Any) -> dict[str, Any]:
    """Return a runtime that plays back `steps` and ends with `result`, by default `done`."""
    return {"type": "scripted", "result": "done", **runtime}


def command(*argv: str, **runtime: Any) -> dict[str, Any]:
    """Return a runtime that starts a program, which reads its prompt as text."""
    return {"type": "command", "command": list(argv), "input": "stdin-text", **runtime}


def shell(script: str, **runtime: Any) -> dict[str, Any]:
    """Return a runtime that is a script of shell, which reads its prompt as text."""
    return command("sh", "-c", script, **runtime)


def python(program: str, *arguments: object, **runtime: Any) -> dict[str, Any]:
    """Return a runtime that is a Python program without site-packages, which reads its prompt as
    JSON."""
    argv = [sys.executable, "-I", "-S", "-c", program, *map(str, arguments)]
    return {"type": "command", "command": argv, **runtime}


EXTERNAL = {"type": "external"}
"""A runtime whose runs are claimed over HTTP."""


def configuration(
    *agents: dict[str, Any],
    workspace: Path | None = None,
    defaults: Mapping[str, Any] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Return a configuration of these agents, each of which may spawn each.

    Args:
        agents: Results of `agent`.
        workspace: Workspace of each agent that names none. It is created, so that no spawn has to
            create it.
        defaults: Further keys of `agents.defaults`.
        settings: Keys of `agents.defaults.subagents` or of `spawnlog`; any other is a section of
            the file: `tools`, `models`, `channels`.
    """
    subagents: dict[str, Any] = {"allowAgents": ["*"]}
    server: dict[str, Any] = {"drainSeconds": 2}
    sections: dict[str, Any] = {}
    for name, value in settings.items():
        if name in SUBAGENT_SETTINGS:
            subagents[name] = value
        elif name in SERVER_SETTINGS:
            server[name] = value
        else:
            sections[name] = value
    listed = list(agents)
    if workspace is not None:
        workspace.mkdir(parents=True, exist_ok=True)
        listed = [{"workspace": str(workspace), **agent} for agent in agents]
    return {
        "agents": {"defaults": {**(defaults or {}), "subagents": subagents}, "list": listed},
        "spawnlog": server,
        **sections,
    }

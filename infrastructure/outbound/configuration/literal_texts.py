"""Texts of a file that are read as they stand, and can hardly be meant so. A revision that was kept
earlier is read whatever it says.

`${NAME}` is replaced in `dataDir`, `databaseUrl`, `workspace`, `agentDir`, `workspaceRoots`, the
`uri` of scripts, `env`, the `url` and `headers` of hooks, and the `file` of a token. In a command
it is not: the arguments of a process are visible to everybody on its machine.
"""

from collections.abc import Iterator
from typing import Any

from domain.configuration.problems import pointer_of
from domain.configuration.secrets import variables_in

LiteralPath = tuple[str | int, ...]
LiteralProblem = tuple[str, str]
"""Pointer and message."""

_IN_COMMAND = "is not replaced in a command; put it into env, where it is, and read it there"
_IN_FOLDER = "is not replaced here; leave cwd out and write it into workspace, where it is"
_NAMELESS = "must not be blank; write the name of a tool, group:… or *"
_IN_NAME = "is not replaced here; write the name itself, or give it by SPAWNLOG_HOST or --host"


def literal_texts(values: dict[str, Any]) -> Iterator[LiteralProblem]:
    """Every text with `${NAME}` where nothing replaces it, and every tool without a name.

    An argument of a command with a blank in it may be a program for a shell, which has braces of
    its own: it stays as it is.
    """
    agents = _mapping(values.get("agents"))
    yield from _check_runtime(_mapping(agents.get("defaults")), ("agents", "defaults"))
    for index, agent in enumerate(_sequence(agents.get("list"))):
        yield from _check_runtime(_mapping(agent), ("agents", "list", index))
    settings = _mapping(values.get("spawnlog"))
    yield from _complaint(settings.get("host"), ("spawnlog", "host"), _IN_NAME)
    yield from _nameless_tools(values)


def _check_runtime(agent: dict[str, Any], path: LiteralPath) -> Iterator[LiteralProblem]:
    runtime = _mapping(agent.get("runtime"))
    if runtime.get("type") != "command":
        return
    here = (*path, "runtime")
    yield from _complaint(runtime.get("cwd"), (*here, "cwd"), _IN_FOLDER)
    for index, argument in enumerate(_sequence(runtime.get("command"))):
        may_be_program = index > 0 and isinstance(argument, str) and len(argument.split()) > 1
        if not may_be_program:
            yield from _complaint(argument, (*here, "command", index), _IN_COMMAND)


def _nameless_tools(values: dict[str, Any]) -> Iterator[LiteralProblem]:
    """A list of blank names alone would count as empty, and an empty one restricts nothing."""
    path = ("tools", "subagents", "tools")
    policy = values
    for name in path:
        policy = _mapping(policy.get(name))
    for key in ("allow", "alsoAllow", "deny"):
        for index, tool in enumerate(_sequence(policy.get(key))):
            if isinstance(tool, str) and not tool.strip():
                yield pointer_of((*path, key, index)), _NAMELESS


def _complaint(text: object, path: LiteralPath, message: str) -> Iterator[LiteralProblem]:
    names = variables_in(text) if isinstance(text, str) else ()
    if names:
        yield pointer_of(path), f"${{{names[0]}}} {message}"


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _sequence(value: object) -> list[Any]:
    return value if isinstance(value, list) else []

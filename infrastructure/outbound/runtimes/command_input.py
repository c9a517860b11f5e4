"""Input of a command runtime's program: arguments, environment, directory and stdin."""

import os
from collections.abc import Mapping, Sequence

from application.ports.runtimes import Launch, LaunchError, launch_object, mcp_url
from domain.configuration.runtimes import PROMPT_PLACEHOLDER, CommandRuntime
from domain.context.script_request import ARGUMENT_BYTES_MAX, ARGUMENTS_BYTES_MAX
from domain.values.json_text import compact_json
from domain.values.text import replace_unstorable
from infrastructure.outbound.child_processes.program import (
    Program,
    minimal_environment,
)
from infrastructure.outbound.files.executables import expand_home

PROMPT_ARGUMENT_BYTES_MAX = 100 * 1024
_USE_STDIN = 'set the runtime\'s input to "stdin-json" or "stdin-text"'


def program_for(
    launch: Launch, runtime: CommandRuntime, *, server: Mapping[str, str], folder: str
) -> Program:
    """Return the program for a launch.

    Args:
        launch: The launch.
        runtime: Its runtime.
        server: Environment of the server; few variables are passed on.
        folder: Working directory of children without a workspace, and base of relative workspaces.

    Raises:
        LaunchError: The command is invalid, or the prompt is too large for an argument.
    """
    try:
        return Program(
            argv=_arguments(launch, runtime, server),
            env=_environment(launch, server),
            cwd=_directory(launch, runtime, server, folder),
            stdin=_input(launch, runtime),
        )
    except ValueError as error:
        text = f"the runtime of agent {launch.agent_id} cannot be started: {error}"
        raise LaunchError("not_executable", text) from None


def prompt_text(launch: Launch) -> str:
    """Return the system prompt, a blank line and the message; only the message without a system
    prompt."""
    return replace_unstorable(
        "\n\n".join(text for text in (launch.system_prompt, launch.message) if text)
    )


def _input(launch: Launch, runtime: CommandRuntime) -> bytes | None:
    match runtime.input:
        case "stdin-json":
            return replace_unstorable(compact_json(launch_object(launch))).encode()
        case "stdin-text":
            return prompt_text(launch).encode()
        case "argv":
            return None


def _directory(
    launch: Launch, runtime: CommandRuntime, server: Mapping[str, str], folder: str
) -> str:
    steps = [expand_home(step, server) for step in (launch.workspace_dir, runtime.cwd) if step]
    return os.path.join(folder, *steps)


def _arguments(
    launch: Launch, runtime: CommandRuntime, server: Mapping[str, str]
) -> tuple[str, ...]:
    program, *arguments = runtime.command
    if runtime.input == "argv":
        if PROMPT_PLACEHOLDER in program:
            raise LaunchError(
                "not_executable",
                f"the runtime of agent {launch.agent_id} has {PROMPT_PLACEHOLDER} in the name of"
                " its program; put it into a later item of command",
            )
        arguments = _with_prompt(arguments, prompt_text(launch))
    return expand_home(program, server), *arguments


def _with_prompt(arguments: list[str], prompt: str) -> list[str]:
    size = len(prompt.encode())
    if size > PROMPT_ARGUMENT_BYTES_MAX:
        raise LaunchError(
            "prompt_too_large",
            f"the prompt has {size} bytes; as an argument it may have at most"
            f" {PROMPT_ARGUMENT_BYTES_MAX}; {_USE_STDIN}",
        )
    filled = [argument.replace(PROMPT_PLACEHOLDER, prompt) for argument in arguments]
    sizes = [len(os.fsencode(argument)) for argument in filled]
    if max(sizes) > ARGUMENT_BYTES_MAX or sum(sizes) > ARGUMENTS_BYTES_MAX:
        raise LaunchError(
            "prompt_too_large",
            f"the command has {max(sizes)} bytes in one argument and {sum(sizes)} in all with the"
            f" prompt in its place, and may have at most {ARGUMENT_BYTES_MAX} and"
            f" {ARGUMENTS_BYTES_MAX}; {_USE_STDIN}",
        )
    return filled


def _newest_paths(paths: Sequence[str]) -> str | None:
    """Return the last paths that fit in one variable. The JSON input has all of them."""
    newest: list[str] = []
    room = ARGUMENT_BYTES_MAX - len("SPAWNLOG_HISTORY=")
    for path in reversed(paths):
        room -= len(os.fsencode(path)) + 1
        if room < 0:
            break
        newest.append(path)
    return os.pathsep.join(reversed(newest)) or None


def _environment(launch: Launch, server: Mapping[str, str]) -> dict[str, str]:
    own = {
        "SPAWNLOG_RUN_ID": str(launch.run_id),
        "SPAWNLOG_SESSION_KEY": launch.session_key,
        "SPAWNLOG_AGENT_ID": launch.agent_id,
        "SPAWNLOG_REQUESTER_SESSION_KEY": launch.requester_session_key,
        "SPAWNLOG_DEPTH": str(launch.depth),
        "SPAWNLOG_URL": launch.url,
        "SPAWNLOG_MCP_URL": mcp_url(launch),
        "SPAWNLOG_TOKEN": launch.token,
        "SPAWNLOG_HISTORY": _newest_paths(launch.history_files),
    }
    given = {name: value for name, value in own.items() if value is not None}
    configured = {name: value for name, value in launch.environment.items() if name not in own}
    # Configured variables override TRACEPARENT, so that an agent can keep its own tracing.
    traced = {"TRACEPARENT": launch.traceparent} if launch.traceparent is not None else {}
    return minimal_environment(server) | traced | configured | given

"""Context scripts that are files of this machine, executed without a shell."""

import os
from collections.abc import Mapping

from application.ports.scripts import ScriptCall, ScriptFinished, ScriptRun
from domain.configuration.context_scripts import why_no_script_path
from domain.configuration.problems import ConfigurationError
from domain.context.script_request import ArgumentsTooLongError, argument_items, json_input
from domain.values.text import replace_unstorable
from infrastructure.outbound.child_processes.launcher import ProcessLauncher, ProcessLaunchError
from infrastructure.outbound.child_processes.program import (
    Program,
    minimal_environment,
)
from infrastructure.outbound.child_processes.run_to_end import run_to_end
from infrastructure.outbound.files.executables import expand_home
from infrastructure.outbound.scripts.failures import failure_of
from infrastructure.outbound.scripts.secrets import SourceOf

STDERR_BYTES_MAX = 8 * 1024


class LocalFileScripts:
    """Implementation of `ScriptRunner` for script files.

    Args:
        launcher: Starts the processes.
        source_of: Returns the file of a revision. It resolves `${NAME}`, and relative paths start
            in its folder.
        server: Environment of the server.
    """

    def __init__(
        self, launcher: ProcessLauncher, source_of: SourceOf, *, server: Mapping[str, str]
    ) -> None:
        self._launcher = launcher
        self._source_of = source_of
        self._server = server

    async def run(self, request: ScriptRun) -> ScriptFinished:
        """Execute the file in its own folder. Afterward it and everything it started is gone.

        Returns:
            The output or the failure; this does not raise for failed scripts.
        """
        called: tuple[ScriptCall, ...] = ()
        try:
            source = self._source_of(request.pinned)
            uri = source.resolve(request.script.uri)
            reason = why_no_script_path(uri)
            if reason is not None:
                return ScriptFinished(error=f"Script {reason}")
            path = os.path.join(source.folder, expand_home(uri, self._server))
            program = program_of(request, path, self._server)
            called = _called_words(program) if request.script.log == "verbose" else ()
            finished = await run_to_end(
                self._launcher,
                program,
                timeout_seconds=request.timeout_seconds,
                output_bytes_max=request.output_bytes_max,
                stderr_bytes_max=STDERR_BYTES_MAX,
            )
        except (ArgumentsTooLongError, ConfigurationError) as error:
            return ScriptFinished(error=f"Script was not run: {error}", called=called)
        except (ProcessLaunchError, OSError, ValueError) as error:
            return ScriptFinished(error=f"Script could not be started: {error}", called=called)
        return ScriptFinished(
            raw=finished.stdout,
            exit_code=finished.exit.code,
            error=failure_of(finished, request, path),
            duration_ms=round(finished.duration_seconds * 1000),
            called=called,
        )


def program_of(request: ScriptRun, path: str, server: Mapping[str, str]) -> Program:
    """Return the program for a script file.

    With format `json` the program reads an object from stdin and has no arguments. Otherwise each
    mapped variable is an argument.

    Raises:
        ArgumentsTooLongError: The arguments do not fit.
    """
    script = request.script
    facts = {name: replace_unstorable(value) for name, value in request.facts.items()}
    if script.format == "json":
        items: tuple[str, ...] = ()
        stdin = json_input(script.arg_map, request.variables).encode()
    else:
        items = argument_items(script.arg_map, request.variables)
        stdin = None
    return Program(
        argv=(path, *items),
        env=minimal_environment(server) | facts,
        cwd=os.path.dirname(path),
        stdin=stdin,
    )


def _called_words(program: Program) -> tuple[ScriptCall, ...]:
    """Return the program for a log."""
    command = ("command:", program.argv)
    if program.stdin is None:
        return (command,)
    return command, ("stdin:", program.stdin.decode())

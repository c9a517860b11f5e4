"""Context scripts that are files of this machine, executed without a shell."""

import os
from collections.abc import Callable, Mapping

from application.ports.scripts import ScriptFinished, ScriptRun
from domain.bounded_text import storable
from domain.configuration.context_scripts import ContextScript, is_url
from domain.configuration.problems import ConfigurationError
from domain.configuration.secret_urls import has_secret_url
from domain.script_arguments import ArgumentsTooLong, argument_items, json_input
from infrastructure.outbound.processes.child_environment import minimal_environment, with_home
from infrastructure.outbound.processes.collect import Finished, run_to_end
from infrastructure.outbound.processes.gatehouse import Gatehouse, GatehouseError
from infrastructure.outbound.processes.program import Program
from infrastructure.outbound.scripts.script_failure import failure_of

STDERR_BYTES_MAX = 8 * 1024
_A_URL = "Script is a URL, and only files are run here; give its file path"


class LocalFileScripts:
    """Runs script files. `server` is the environment of this server; relative paths count from
    `folder`, the one of the configuration file; `resolve` replaces each `${NAME}` of a uri."""

    def __init__(
        self,
        gatehouse: Gatehouse,
        *,
        server: Mapping[str, str],
        folder: str,
        resolve: Callable[[str], str] = str,
    ) -> None:
        self._gatehouse = gatehouse
        self._server = server
        self._folder = os.path.abspath(folder)
        self._resolve = resolve

    def serves(self, script: ContextScript) -> bool:
        """Whether it is a file."""
        return not script.is_remote

    async def run(self, request: ScriptRun) -> ScriptFinished:
        """Executes the file in its own folder; it and all it started are gone afterwards."""
        if not self.serves(request.script):
            return _not_run(_A_URL)
        try:
            uri = self._resolve(request.script.uri)
            if is_url(uri) or has_secret_url(uri):
                # Taken for a path, it would be shown as one, with what is secret in it.
                return _not_run(_A_URL)
            path = os.path.join(self._folder, with_home(uri, self._server))
            finished = await run_to_end(
                self._gatehouse,
                program_of(request, path, self._server),
                timeout_seconds=request.timeout_seconds,
                output_bytes_max=request.output_bytes_max,
                stderr_bytes_max=STDERR_BYTES_MAX,
            )
        except (ArgumentsTooLong, ConfigurationError) as error:
            return _not_run(f"Script was not run: {error}")
        except (GatehouseError, OSError, ValueError) as error:
            return _not_run(f"Script could not be started: {error}")
        return ScriptFinished(
            output=storable(finished.stdout.decode(errors="replace").strip()),
            output_bytes=len(finished.stdout),
            exit_code=finished.exit.code,
            error=failure_of(finished, request, path),
            duration_ms=_milliseconds(finished),
        )


def program_of(request: ScriptRun, path: str, server: Mapping[str, str]) -> Program:
    """The program that the script at `path` is: with format `json` it reads an object from stdin
    and has no arguments, else each mapped variable is an argument. `ArgumentsTooLong` when those
    do not fit."""
    script = request.script
    facts = {name: storable(value) for name, value in request.facts.items()}
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


def _not_run(error: str) -> ScriptFinished:
    return ScriptFinished(output="", output_bytes=0, exit_code=None, error=error, duration_ms=0)


def _milliseconds(finished: Finished) -> int:
    return round(finished.duration_seconds * 1000)

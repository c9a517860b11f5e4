"""Messages for failed scripts."""

from application.ports.scripts import ScriptRun
from domain.configuration.secrets import variables_in
from domain.values.text import replace_unstorable, single_line
from infrastructure.outbound.child_processes.program import signal_name, was_executed
from infrastructure.outbound.child_processes.run_to_end import ProgramResult
from infrastructure.outbound.files.executables import why_not_executable

REASON_CHARACTERS_MAX = 100


def failure_of(finished: ProgramResult, request: ScriptRun, path: str) -> str | None:
    """Return why a script failed; None if it exited with 0 within its limits.

    Values of variables in the URI are not shown, because they may be secrets.
    """
    exit_ = finished.exit
    if finished.timed_out:
        return f"Script execution timed out after {request.timeout_seconds:g} seconds"
    if finished.overflowed:
        return (
            f"Script printed more than {request.output_bytes_max} bytes and was stopped; reduce"
            " its output"
        )
    if exit_.error is not None and not was_executed(exit_.error):
        uri = request.script.uri
        shown = uri if variables_in(uri) else path
        return _never_executed(path, shown, exit_.error.replace(repr(path), repr(shown)))
    if exit_.error is not None:
        return f"Script was interrupted: {exit_.error}"
    if exit_.signal is not None:
        return f"Script was ended by signal {signal_name(exit_.signal)}"
    if exit_.code == 0:
        return None
    tail = replace_unstorable(finished.stderr_tail.decode(errors="replace").strip())
    return f"Script exited with code {exit_.code}" + (f": {tail}" if tail else "")


def status_failure(status: int, reason: str) -> str | None:
    """Return the failure for an HTTP status; None for 2xx."""
    if 200 <= status < 300:
        return None
    shown = single_line(reason, characters_max=REASON_CHARACTERS_MAX)
    return f"HTTP {status}: {shown}" if shown else f"HTTP {status}"


def _never_executed(path: str, shown: str, error: str) -> str:
    """Return why a script was not executed.

    The file is inspected only after the failure, so there is no race with the execution.
    """
    reason = why_not_executable(path, shown)
    if reason is not None:
        return f"Script {reason}"
    if "Exec format error" in error:
        return f"Script is not a program: {shown}; begin it with a line such as #!/bin/sh"
    return f"Script {error}"

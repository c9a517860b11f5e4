"""How a command runtime ended, in the port's words. Pure."""

from collections.abc import Mapping
from typing import Literal

from application.ports.credentials import Credential
from application.ports.runtimes import Launch, RuntimeEnd
from domain.configuration.secrets import is_secret_name
from domain.delivery.transcript import RuntimeReading
from domain.values.text import replace_unstorable
from infrastructure.outbound.child_processes.program import Exit
from infrastructure.outbound.processes.exit_words import (
    holder_fell_silent,
    signal_name,
    was_executed,
)
from infrastructure.outbound.runtimes.transcript_entries import usage_of

STDERR_BYTES_MAX = 8 * 1024


def end_of(
    exit_: Exit,
    *,
    reading: RuntimeReading,
    stderr: str,
    too_much: str | None,
) -> RuntimeEnd:
    """Outcome and error from the exit alone; `too_much` says which limit it was ended for.
    `stderr` is the last of it, masked."""
    outcome: Literal["success", "error", "stopped"] = "error"
    reason, error = "exit", None
    if too_much is not None:
        reason, error = "output_limit", f"ended because {too_much}"
    elif holder_fell_silent(exit_.error):
        # Nobody asked it to stop, so it is not said to have been stopped.
        reason, error = "interrupted", f"interrupted: {exit_.error}"
    elif exit_.killed:
        outcome, reason = "stopped", "stopped"
    elif exit_.signal is not None:
        reason, error = "signal", f"ended by signal {signal_name(exit_.signal)}"
    elif exit_.error is not None:
        executed = was_executed(exit_.error)
        reason = "interrupted" if executed else "not_executable"
        error = exit_.error if executed else f"{exit_.error}; {_advice(exit_.error)}"
    elif exit_.code == 0:
        outcome = "success"
    else:
        error = f"exited with code {exit_.code}"
    tail = printable_tail(stderr)
    return RuntimeEnd(
        outcome=outcome,
        reason=reason,
        exit_code=exit_.code,
        signal=exit_.signal,
        result=reading.result,
        error=f"{error}: {tail}" if error and tail else error,
        usage=usage_of(reading),
    )


def secrets_of(launch: Launch) -> tuple[str, ...]:
    """The values that nobody may see: the token, credentials, and what the environment names a
    secret."""
    named = [
        value
        for name, value in launch.environment.items()
        if isinstance(value, Credential) or is_secret_name(name)
    ]
    return tuple(one for one in (*named, launch.token) if one)


def printable_tail(stderr: str) -> str:
    """The last 8 KiB of a text, without blanks around it."""
    tail = replace_unstorable(stderr.strip()).encode()[-STDERR_BYTES_MAX:]
    return tail.decode(errors="ignore").strip()


_ADVICE: Mapping[str, str] = {
    "the working directory": "make that directory, or correct the runtime's cwd",
    "Permission denied": "make it executable (chmod +x), or correct the runtime's command",
    "Exec format error": "begin it with a line such as #!/bin/sh, or correct the runtime's command",
    "Argument list too long": 'set the runtime\'s input to "stdin-json"',
    "No such file": "install it or its interpreter, or correct the runtime's command",
}


def _advice(error: str) -> str:
    found = (advice for sign, advice in _ADVICE.items() if sign in error)
    return next(found, "correct the runtime's command")

"""Values: a program to run, and how it ended."""

import os
import signal as signals
from collections.abc import Mapping
from dataclasses import dataclass

SPEC_BYTES_MAX = 8 * 1024 * 1024


@dataclass(frozen=True)
class Program:
    """One program to run.

    Attributes:
        argv: Command and arguments. `argv[0]` is looked up in the PATH of `env` (not of the server)
            unless it contains a slash. A relative path is relative to `cwd`.
        env: The whole environment.
        cwd: Working directory. None means the directory of the server when its first program
            started.
        stdin: The whole input; the pipe is closed after the last byte. None means /dev/null.

    Raises:
        ValueError: No program can get these values: no argv, a NUL, a variable name with "=", text
            without a file system encoding, or more than `SPEC_BYTES_MAX` bytes in all. The message
            names the place and never quotes the text, which may hold secrets.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None
    stdin: bytes | None

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise ValueError("a program needs a command: argv is empty or its first item is")
        total = 0
        for index, argument in enumerate(self.argv):
            total += _size(argument, f"argv[{index}]")
        for name, value in self.env.items():
            if not name or "=" in name:
                raise ValueError("the name of an environment variable is empty or contains '='")
            total += _size(name, "the name of an environment variable")
            total += _size(value, f"the environment variable {name!r}")
        if self.cwd is not None:
            if not self.cwd:
                raise ValueError("the working directory is an empty string; give a path or None")
            total += _size(self.cwd, "the working directory")
        if total > SPEC_BYTES_MAX:
            raise ValueError(
                f"argv and environment take {total} bytes; at most {SPEC_BYTES_MAX} are allowed:"
                " pass large input through stdin or a file"
            )


@dataclass(frozen=True)
class Exit:
    """End of a program. Exactly one of `code`, `signal` and `error` is set.

    A program that ended by itself just before it was to be killed keeps its own code.

    Attributes:
        code: Exit code.
        signal: Number of the signal that ended the program.
        error: Message: the program could not be executed, the server killed it (then `killed` is
            True), the guard died, or some processes remain that this user may not kill.
        killed: True if the server killed the program, or the guard killed it for silence.
    """

    code: int | None = None
    signal: int | None = None
    error: str | None = None
    killed: bool = False


def _size(text: str, place: str) -> int:
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        raise ValueError(
            f"{place} contains characters that cannot be passed to a program"
        ) from None
    if b"\0" in encoded:
        raise ValueError(f"{place} contains a NUL character, which cannot be passed to a program")
    return len(encoded) + 1


NEVER_EXECUTED = "could not be executed: "
HOLDER_FELL_SILENT = "no heartbeat from the server: "


def was_executed(error: str) -> bool:
    """Return True if the error of an exit occurred after the program was executed."""
    return not error.startswith(NEVER_EXECUTED)


def holder_fell_silent(error: str | None) -> bool:
    """Return True if the guard killed the program because the server sent no heartbeat."""
    return error is not None and error.startswith(HOLDER_FELL_SILENT)


def signal_name(number: int) -> str:
    """Return the name of a signal, such as `SIGSEGV`, or its number if it has none."""
    try:
        return signals.Signals(number).name
    except ValueError:
        return str(number)


PASSED_VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR")


def minimal_environment(server: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the server that every program gets, if they are set."""
    return {name: server[name] for name in PASSED_VARIABLES if name in server}

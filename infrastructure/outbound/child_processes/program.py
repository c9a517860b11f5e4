"""What to run, and how it ended."""

import os
import signal as signals
from collections.abc import Mapping
from dataclasses import dataclass

SPEC_BYTES_MAX = 8 * 1024 * 1024


@dataclass(frozen=True)
class Program:
    """One program to run.

    `argv[0]` is looked up in the PATH of `env` (not the server's) unless it contains a slash; a
    relative path counts from `cwd`. `env` is the whole environment. `cwd=None` is the directory
    the server was in when its first program started. `stdin` is the whole input, closed after the
    last byte; `None` is /dev/null.

    Raises ValueError when something cannot be handed to any program: no argv, a NUL, a name with
    "=", text that has no file system encoding, or more than `SPEC_BYTES_MAX` bytes in all. The
    message names the place and never quotes the text, which may hold secrets.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None
    stdin: bytes | None

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise ValueError("a program needs a command: argv is empty or its first item is")
        total = 0
        for index, item in enumerate(self.argv):
            total += _size(item, f"argv[{index}]")
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
    """How a program ended; exactly one of `code`, `signal` and `error` is set.

    `error` says in words that the program could not be executed, that its holder ended it (then
    `killed` is true), that the guard itself died, or that processes were left that nobody here may
    kill. A program that ended by itself just before it was to be killed keeps its own code.
    """

    code: int | None = None
    signal: int | None = None
    error: str | None = None
    killed: bool = False


def _size(text: str, place: str) -> int:
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        raise ValueError(f"{place} holds characters that no program can be given") from None
    if b"\0" in encoded:
        raise ValueError(f"{place} holds a NUL character, which no program can be given")
    return len(encoded) + 1


NEVER_EXECUTED = "could not be executed: "
HOLDER_FELL_SILENT = "its holder fell silent: "


def was_executed(error: str) -> bool:
    """Whether the error of an exit came after the program had been executed."""
    return not error.startswith(NEVER_EXECUTED)


def holder_fell_silent(error: str | None) -> bool:
    """Whether the error of an exit says that the program was killed because its holder had shown
    no sign of life, and not because anybody wanted it to end."""
    return error is not None and error.startswith(HOLDER_FELL_SILENT)


def signal_name(number: int) -> str:
    """`SIGSEGV`, or the number where it has no name."""
    try:
        return signals.Signals(number).name
    except ValueError:
        return str(number)


PASSED_VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR")


def minimal_environment(server: Mapping[str, str]) -> dict[str, str]:
    """The variables of the server's environment that every program gets, where they are set."""
    return {name: server[name] for name in PASSED_VARIABLES if name in server}


def expand_home(path: str, server: Mapping[str, str]) -> str:
    """The path with a leading `~` or `~/` replaced by the server's home directory."""
    if path != "~" and not path.startswith("~/"):
        return path
    return (server.get("HOME") or os.path.expanduser("~")) + path[1:]

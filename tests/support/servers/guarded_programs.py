"""Programs that tests run behind guards."""

import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from infrastructure.outbound.child_processes.guarded_process import GuardedProcess
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.child_processes.program import Program
from infrastructure.outbound.child_processes.run_to_end import ProgramResult

Runner = Callable[..., Coroutine[Any, Any, ProgramResult]]

SILENCE_SECONDS = 0.6
"""Limit of the launcher `silent`."""

# Defines `daemon()`. It starts a process in a session of its own that ignores every signal it
# can, prints its pid and keeps the pipes open for a minute. It returns after the pid is printed.
DAEMON = """
import os, signal
def daemon():
    up, ready = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            signal.alarm(60)
            os.write(1, b"%d\\n" % os.getpid())
            os.write(ready, b"x")
            while True:
                signal.pause()
        os._exit(0)
    os.wait()
    os.read(up, 1)
"""


def python(text: str, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs a Python text with the fastest start."""
    return (sys.executable, "-I", "-S", "-c", text, *arguments)


async def started(
    launcher: ProcessLauncher, *argv: str, stdin: bytes | None = None
) -> GuardedProcess:
    """Start a program and let it run."""
    process = await launcher.open(Program(argv, {"PATH": "/usr/bin:/bin"}, None, stdin))
    process.go()
    return process


async def lines(process: GuardedProcess, count: int) -> list[str]:
    """Return the first lines that the program prints."""
    text = b""
    while text.count(b"\n") < count:
        part = await process.stdout.read()
        assert part, f"the program ended after {text!r}"
        text += part
    return text.decode().splitlines()


def touch(path: Path) -> Program:
    """Return a program that creates a file."""
    return Program(("touch", str(path)), {"PATH": "/usr/bin:/bin"}, None, None)

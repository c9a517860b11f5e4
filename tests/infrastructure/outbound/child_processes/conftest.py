"""Launchers; a test fails if one leaves a process or an open descriptor."""

from collections.abc import AsyncIterator

import pytest

from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.child_processes.program import Program
from infrastructure.outbound.child_processes.run_to_end import ProgramResult, run_to_end
from tests.support.builders.launches import careful_launcher
from tests.support.servers.guarded_programs import SILENCE_SECONDS, Runner


@pytest.fixture
async def silent() -> AsyncIterator[ProcessLauncher]:
    """Yield a launcher with a limit on silence, whose heartbeat is sent on request."""
    async with careful_launcher(SILENCE_SECONDS) as launcher:
        yield launcher


@pytest.fixture
def run(launcher: ProcessLauncher) -> Runner:
    """Return a function that runs a command to its end, under limits that tests do not reach by
    accident.
    """

    async def run_command(
        *argv: str,
        env: dict[str, str] | None = None,
        cwd: str | None = None,
        stdin: bytes | None = None,
        timeout_seconds: float = 20.0,
        output_bytes_max: int = 8 * 1024 * 1024,
        stderr_bytes_max: int = 1000,
    ) -> ProgramResult:
        given = {"PATH": "/usr/bin:/bin"} if env is None else env
        return await run_to_end(
            launcher,
            Program(argv, given, cwd, stdin),
            timeout_seconds=timeout_seconds,
            output_bytes_max=output_bytes_max,
            stderr_bytes_max=stderr_bytes_max,
        )

    return run_command

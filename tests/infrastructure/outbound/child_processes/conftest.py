"""A launcher that leaves no process and no descriptor behind, or the test fails."""

from collections.abc import AsyncIterator

import pytest

from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.child_processes.program import Program
from infrastructure.outbound.child_processes.run_to_end import ProgramResult, run_to_end
from tests.support.servers.guarded_programs import Runner
from tests.support.servers.process_table import is_alive, open_descriptors, until_no_more_is_open


@pytest.fixture
async def launcher() -> AsyncIterator[ProcessLauncher]:
    before = open_descriptors()
    house = ProcessLauncher()
    yield house
    warm = house.fork_server_pid
    await house.close()
    assert warm is None or not is_alive(warm)
    await until_no_more_is_open(before)


@pytest.fixture
def run(launcher: ProcessLauncher) -> Runner:
    """Runs a command to its end under limits that no test reaches by accident."""

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

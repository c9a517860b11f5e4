"""One program run to its end under limits."""

import asyncio
import tracemalloc

import pytest

from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.child_processes.program import Exit
from tests.support.servers.guarded_programs import DAEMON, Runner, python
from tests.support.servers.process_table import carrying, children, until


async def test_a_program_over_its_time_is_killed_and_its_output_kept(run: Runner) -> None:
    finished = await run("sh", "-c", "echo out; echo err >&2; sleep 60", timeout_seconds=0.1)
    assert (finished.timed_out, finished.overflowed) == (True, False)
    assert finished.exit.killed
    assert (finished.stdout, finished.stderr_tail) == (b"out\n", b"err\n")
    assert 0.1 <= finished.duration_seconds < 10


async def test_time_runs_out_for_a_program_that_closed_its_streams(run: Runner) -> None:
    finished = await run("sh", "-c", "exec >&- 2>&-; sleep 60", timeout_seconds=0.1)
    assert (finished.timed_out, finished.exit.killed) == (True, True)


async def test_endless_printing_is_stopped_in_bounded_memory(run: Runner) -> None:
    tracemalloc.start()
    try:
        finished = await run("yes", output_bytes_max=1_000_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert finished.stdout == b"y\n" * 500_000
    assert (finished.overflowed, finished.timed_out) == (True, False)
    assert finished.exit.killed
    assert peak < 6_000_000


async def test_endless_complaints_are_cut_to_their_tail(run: Runner) -> None:
    command = "(yes complaint | head -c 3000000; printf last) >&2; echo out"
    finished = await run("sh", "-c", command, stderr_bytes_max=14)
    assert finished.stderr_tail == b"complaint\nlast"
    assert (finished.stdout, finished.exit) == (b"out\n", Exit(code=0))


async def test_output_of_exactly_the_limit_is_no_overflow(run: Runner) -> None:
    fits = await run("printf", "12345", output_bytes_max=5)
    assert (fits.stdout, fits.overflowed, fits.exit) == (b"12345", False, Exit(code=0))
    over = await run("printf", "123456", output_bytes_max=5)
    assert (over.stdout, over.overflowed) == (b"12345", True)


async def test_a_daemon_that_holds_the_pipes_does_not_hold_up_the_end(run: Runner) -> None:
    finished = await run(*python(DAEMON + "daemon()"), timeout_seconds=20)
    assert finished.exit == Exit(code=0)
    assert not finished.timed_out
    assert finished.duration_seconds < 10


async def test_a_cancelled_run_leaves_no_process(launcher: ProcessLauncher, run: Runner) -> None:
    token = "cancelled-run-of-a-test"
    running = asyncio.create_task(run(*python("import signal; signal.pause()", token)))
    await until(lambda: bool(carrying(token)))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert carrying(token) == []
    warm = launcher.fork_server_pid
    assert warm is not None
    await until(lambda: children(warm) == [])

"""A holder that says nothing for too long is treated like one that let go."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.child_processes.program import Exit, Program
from tests.support.servers.guarded_programs import DAEMON, SILENCE_SECONDS, lines, python, started
from tests.support.servers.process_table import (
    is_alive,
    state,
    until,
    until_dead,
)

PROJECT = Path(__file__).parents[4]

# Says how its two programs ended; its stdin gives the word for the go of the second.
HOLDER = """
import asyncio, sys
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.child_processes.program import Program

async def beat(house):
    while True:
        house.heartbeat()
        await asyncio.sleep(0.1)

async def hold():
    house = ProcessLauncher(silence_seconds_max=float(sys.argv[3]))
    beating = asyncio.create_task(beat(house))
    unstarted = await house.open(Program(("/bin/touch", sys.argv[2]), {}, None, None))
    argv = (sys.executable, "-I", "-S", "-c", sys.argv[1])
    process = await house.open(Program(argv, {}, None, b"x" * 10**6))
    process.go()
    print(unstarted.guard_pid, process.guard_pid, flush=True)
    text = b""
    while text.count(b"\\n") < 3:
        text += await process.stdout.read()
    print(text.decode(), end="", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    unstarted.go()
    for one in (process, unstarted):
        ended = await one.wait()
        print(ended.killed, ended.error, flush=True)
    beating.cancel()
    await house.close()

asyncio.run(hold())
"""


@contextlib.asynccontextmanager
async def beating(house: ProcessLauncher) -> AsyncIterator[None]:
    async def beat() -> None:
        while True:
            house.heartbeat()
            await asyncio.sleep(SILENCE_SECONDS / 6)

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def suspended(pid: int) -> None:
    """Stop a process for longer than the limit on silence."""
    os.kill(pid, signal.SIGSTOP)
    stopped_at = time.monotonic()
    await until(lambda: time.monotonic() - stopped_at > SILENCE_SECONDS * 1.2)
    os.kill(pid, signal.SIGCONT)


@pytest.mark.kill
async def test_a_frozen_holder_loses_every_process_while_it_is_frozen(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    program = DAEMON + "daemon()\ndaemon()\nprint(os.getpid(), flush=True)\nsignal.pause()"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, program, str(mark), "1.0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=PROJECT,
        env={"PYTHONPATH": str(PROJECT)},
        text=True,
    )
    with holder:
        try:
            assert holder.stdout is not None
            pids: list[int] = []
            while len(pids) < 5:
                said = await asyncio.to_thread(holder.stdout.readline)
                assert said
                pids += [int(word) for word in said.split()]
            assert all(map(is_alive, pids))
            os.kill(holder.pid, signal.SIGSTOP)
            await until_dead(*pids)
            assert state(holder.pid) == "T"
            os.kill(holder.pid, signal.SIGCONT)
            said, _ = await asyncio.to_thread(holder.communicate, "go\n", 20)
        finally:
            holder.kill()
    assert said.splitlines() == [
        "True its holder fell silent: killed after 1 seconds",
        "True its holder fell silent: not executed within 1 seconds",
    ]
    assert holder.returncode == 0
    assert not mark.exists()


@pytest.mark.kill
async def test_heartbeats_keep_a_program_alive_beyond_several_limits(
    silent: ProcessLauncher,
) -> None:
    async with beating(silent):
        began = time.monotonic()
        seconds = str(SILENCE_SECONDS * 3)
        process = await started(silent, "sleep", seconds)
        assert await process.wait() == Exit(code=0)
        assert time.monotonic() - began >= SILENCE_SECONDS * 3


@pytest.mark.kill
async def test_heartbeats_keep_a_gate_that_waits_for_its_go(
    silent: ProcessLauncher, tmp_path: Path
) -> None:
    mark = tmp_path / "executed"
    program = Program(("touch", str(mark)), {"PATH": "/usr/bin:/bin"}, None, None)
    async with beating(silent):
        process = await silent.open(program)
        with pytest.raises(TimeoutError):
            # To cancel the wait itself would kill it.
            await asyncio.wait_for(asyncio.shield(process.wait()), SILENCE_SECONDS * 3)
        assert not mark.exists()
        process.go()
        assert await process.wait() == Exit(code=0)
    assert mark.exists()


@pytest.mark.kill
async def test_after_silence_before_its_go_a_program_is_never_executed(
    silent: ProcessLauncher, tmp_path: Path
) -> None:
    mark = tmp_path / "executed"
    program = Program(("touch", str(mark)), {"PATH": "/usr/bin:/bin"}, None, None)
    process = await silent.open(program)
    ended = await asyncio.wait_for(process.wait(), 10)
    process.go()
    assert ended.killed
    assert ended.error == f"its holder fell silent: not executed within {SILENCE_SECONDS} seconds"
    assert await process.kill() == await process.wait() == ended
    assert not mark.exists()


@pytest.mark.kill
async def test_a_go_that_a_frozen_gate_finds_too_late_executes_nothing(
    silent: ProcessLauncher, tmp_path: Path
) -> None:
    mark = tmp_path / "executed"
    program = Program(("touch", str(mark)), {"PATH": "/usr/bin:/bin"}, None, None)
    process = await silent.open(program)
    os.kill(process.guard_pid, signal.SIGSTOP)
    process.go()
    await suspended(process.guard_pid)
    assert (await asyncio.wait_for(process.wait(), 10)).killed
    assert not mark.exists()


@pytest.mark.kill
async def test_go_found_by_suspended_guard_waits_for_heartbeat(
    silent: ProcessLauncher, tmp_path: Path
) -> None:
    mark = tmp_path / "executed"
    program = Program(("touch", str(mark)), {"PATH": "/usr/bin:/bin"}, None, None)
    process = await silent.open(program)
    os.kill(process.guard_pid, signal.SIGSTOP)
    process.go()
    await suspended(process.guard_pid)
    async with beating(silent):
        assert await asyncio.wait_for(process.wait(), 10) == Exit(code=0)
    assert mark.exists()


@pytest.mark.kill
async def test_suspended_machine_keeps_its_programs(silent: ProcessLauncher) -> None:
    async with beating(silent):
        process = await started(silent, "sleep", "60")
    await suspended(process.guard_pid)
    # The holder is slower to wake than the guard.
    resumed_at = time.monotonic()
    await until(lambda: time.monotonic() - resumed_at > SILENCE_SECONDS / 4)
    async with beating(silent):
        with pytest.raises(TimeoutError):
            # To cancel the wait itself would kill it.
            await asyncio.wait_for(asyncio.shield(process.wait()), SILENCE_SECONDS * 2)


@pytest.mark.kill
async def test_silence_kills_a_program_and_its_daemons(silent: ProcessLauncher) -> None:
    async with beating(silent):
        process = await started(silent, *python(DAEMON + "daemon()\ndaemon()\nsignal.pause()"))
        daemons = [int(line) for line in await lines(process, 2)]
    assert all(map(is_alive, daemons))
    ended = await asyncio.wait_for(process.wait(), 10)
    assert ended == Exit(
        error=f"its holder fell silent: killed after {SILENCE_SECONDS} seconds", killed=True
    )
    assert not any(map(is_alive, daemons))
    assert await process.stdout.read() == b""


@pytest.mark.kill
async def test_without_a_limit_a_silent_holder_keeps_its_program(
    launcher: ProcessLauncher,
) -> None:
    process = await started(launcher, "sleep", str(SILENCE_SECONDS * 2))
    assert await asyncio.wait_for(process.wait(), 10) == Exit(code=0)


async def test_a_program_that_ends_by_itself_keeps_its_code_under_a_limit(
    silent: ProcessLauncher,
) -> None:
    process = await started(silent, "sh", "-c", "exit 7")
    assert await process.wait() == Exit(code=7)

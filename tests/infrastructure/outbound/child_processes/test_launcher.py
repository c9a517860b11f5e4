"""The launcher: its fork server, pending starts, heartbeats, failures, its end."""

import asyncio
import contextlib
import os
import resource
import signal
import sys
from pathlib import Path

import pytest
import uvloop

from infrastructure.outbound.child_processes import fork_server_client
from infrastructure.outbound.child_processes import launcher as launcher_module
from infrastructure.outbound.child_processes.launcher import ProcessLauncher, ProcessLaunchError
from infrastructure.outbound.child_processes.pipes import PipeWriter
from infrastructure.outbound.child_processes.program import Exit, Program
from infrastructure.outbound.child_processes.run_to_end import ProgramResult, run_to_end
from tests.support.builders.launches import careful_launcher
from tests.support.servers.guarded_programs import Runner, lines, python, started
from tests.support.servers.process_table import (
    children,
    is_alive,
    state,
    until_dead,
    wait_until_dead,
)
from tests.support.waiting import until


@pytest.mark.kill
async def test_fifty_programs_run_at_once(run: Runner) -> None:
    finished = await asyncio.gather(
        *(run("sh", "-c", "cat; exit $0", str(n), stdin=b"%d" % n * 30_000) for n in range(50))
    )
    for number, result in enumerate(finished):
        assert result.stdout == b"%d" % number * 30_000
        assert result.exit == Exit(code=number)


async def test_killed_warm_process_is_replaced(launcher: ProcessLauncher, run: Runner) -> None:
    running = await started(launcher, "sh", "-c", "echo up; read word; echo $word", stdin=b"x\n")
    waiting = await launcher.open(Program(("/bin/echo", "later"), {}, None, None))
    warm = launcher.fork_server_pid
    assert warm is not None
    os.kill(warm, signal.SIGKILL)
    assert (await run("echo", "again")).stdout == b"again\n"
    assert launcher.fork_server_pid != warm
    waiting.go()
    assert await waiting.wait() == Exit(code=0)
    assert await waiting.stdout.read() == b"later\n"
    assert await lines(running, 2) == ["up", "x"]
    assert await running.wait() == Exit(code=0)


async def test_starts_survive_death_of_warm_process(launcher: ProcessLauncher, run: Runner) -> None:
    await launcher.start()
    assert launcher.fork_server_pid is not None
    os.kill(launcher.fork_server_pid, signal.SIGSTOP)
    runs = [asyncio.create_task(run("echo", str(n))) for n in range(12)]
    await asyncio.sleep(0)
    os.kill(launcher.fork_server_pid, signal.SIGKILL)
    assert [(await task).stdout for task in runs] == [b"%d\n" % n for n in range(12)]


async def test_gates_ignore_signals_to_end(launcher: ProcessLauncher) -> None:
    process = await started(launcher, "sh", "-c", "echo up; read word; echo $word", stdin=b"x\n")
    assert launcher.fork_server_pid is not None
    for pid in (process.guard_pid, launcher.fork_server_pid):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(pid, number)
    assert await lines(process, 2) == ["up", "x"]
    assert await process.wait() == Exit(code=0)
    assert is_alive(launcher.fork_server_pid)


async def test_closed_launcher_has_ended_everything(launcher: ProcessLauncher) -> None:
    started_ones = [await started(launcher, "sleep", "60") for _ in range(3)]
    unstarted = await launcher.open(Program(("/bin/true",), {}, None, None))
    warm = launcher.fork_server_pid
    assert warm is not None
    await launcher.close()
    await launcher.close()
    assert state(warm) == "X"
    for process in (*started_ones, unstarted):
        assert not is_alive(process.guard_pid)
        assert (await process.wait()).killed
    with pytest.raises(ProcessLaunchError, match="the server is stopping"):
        await launcher.open(Program(("/bin/true",), {}, None, None))


async def test_warm_process_that_cannot_start_says_why(
    launcher: ProcessLauncher, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "warm.py"
    broken.write_text("raise RuntimeError('no fork today')\n")
    monkeypatch.setattr(fork_server_client, "PROGRAM", broken)
    with pytest.raises(ProcessLaunchError, match="not be started: RuntimeError: no fork today"):
        await launcher.start()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere"))
    with pytest.raises(ProcessLaunchError, match="No such file or directory"):
        await launcher.start()


async def test_hanging_warm_process_is_given_up(
    launcher: ProcessLauncher, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    await launcher.start()
    hanging = launcher.fork_server_pid
    assert hanging is not None
    os.kill(hanging, signal.SIGSTOP)
    monkeypatch.setattr(launcher_module, "OPEN_SECONDS_MAX", 0.05)
    with pytest.raises(
        ProcessLaunchError, match=r"could not start a guard process within 0\.05 seconds"
    ):
        await run("true")
    monkeypatch.undo()
    assert (await run("true")).exit == Exit(code=0)
    assert not is_alive(hanging)


async def test_close_does_not_wait_for_hanging_warm_process(
    launcher: ProcessLauncher, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    await launcher.start()
    hanging = launcher.fork_server_pid
    assert hanging is not None
    os.kill(hanging, signal.SIGSTOP)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(run("true"), timeout=0.05)
    monkeypatch.setattr(launcher_module, "CLOSE_SECONDS_MAX", 0.05)
    monkeypatch.setattr(fork_server_client, "END_SECONDS_MAX", 0.05)
    await launcher.close()
    assert not is_alive(hanging)


@pytest.mark.usefixtures("resting_databases")
async def test_launcher_without_descriptors_refuses_and_recovers(
    launcher: ProcessLauncher, run: Runner
) -> None:
    await launcher.start()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 9, hard))
    fillers: list[int] = []
    try:
        with contextlib.suppress(OSError):
            while True:
                fillers.append(os.dup(0))
        for _ in range(5):
            os.close(fillers.pop())
        with pytest.raises(OSError, match="Too many open files"):
            await run("true", stdin=b"x")
    finally:
        for filler in fillers:
            os.close(filler)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (await run("cat", stdin=b"x")).stdout == b"x"


async def test_cancelled_opens_leave_nothing(launcher: ProcessLauncher) -> None:
    await launcher.start()
    warm, cancelled = launcher.fork_server_pid, 0
    assert warm is not None
    for steps in range(8):
        opening = asyncio.create_task(
            launcher.open(Program(("sleep", "60"), {"X": "x" * 100_000}, None, b"input"))
        )
        for _ in range(steps):
            await asyncio.sleep(0)
        opening.cancel()
        try:
            opened = await opening
        except asyncio.CancelledError:
            cancelled += 1
        else:
            # On a busy machine the gate may be faster.
            await opened.kill()
    assert cancelled
    await until(lambda: children(warm) == [])
    assert launcher.fork_server_pid == warm


async def test_cancelled_wait_kills_program_and_leaves_output(launcher: ProcessLauncher) -> None:
    process = await started(launcher, "sh", "-c", "echo said >&2; echo up; exec sleep 60")
    await lines(process, 1)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(process.wait(), timeout=0.01)
    await until_dead(process.guard_pid)
    assert (await process.kill()).killed
    assert await process.stderr.read() == b"said\n"
    assert await process.stderr.read() == b""


@pytest.mark.kill
async def test_everything_works_on_uvloop() -> None:
    programs = {
        ("cat",): 20.0,
        ("true",): 20.0,
        ("sh", "-c", "exec <&-; echo said >&2; sleep 60"): 0.1,
        ("yes",): 20.0,
    }

    async def run_all() -> list[ProgramResult]:
        async with careful_launcher() as house:
            return [
                await run_to_end(
                    house,
                    Program(argv, {"PATH": "/usr/bin:/bin"}, None, b"x" * 3_000_000),
                    timeout_seconds=seconds,
                    output_bytes_max=4_000_000,
                    stderr_bytes_max=100,
                )
                for argv, seconds in programs.items()
            ]

    def in_a_loop_of_its_own() -> list[ProgramResult]:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(run_all())

    copied, unread, stopped, endless = await asyncio.to_thread(in_a_loop_of_its_own)
    assert (len(copied.stdout), copied.exit) == (3_000_000, Exit(code=0))
    assert unread.exit == Exit(code=0)
    assert (stopped.timed_out, stopped.stderr_tail) == (True, b"said\n")
    assert (len(endless.stdout), endless.overflowed) == (4_000_000, True)


async def test_heartbeats_do_not_split_a_large_specification(silent: ProcessLauncher) -> None:
    items = ["x" * 100_000 for _ in range(15)]
    program = Program(
        python("import sys; print(sum(map(len, sys.argv[1:])))", *items), {}, None, None
    )
    async with asyncio.timeout(20):
        opening = asyncio.create_task(silent.open(program))
        while not opening.done():
            silent.heartbeat()
            await asyncio.sleep(0)
        process = await opening
        process.go()
        assert await process.stdout.read() == b"1500000\n"
        assert await process.wait() == Exit(code=0)


async def test_heartbeat_passes_over_ended_programs(silent: ProcessLauncher) -> None:
    silent.heartbeat()
    process = await started(silent, "true")
    os.kill(process.guard_pid, signal.SIGKILL)
    # Nothing of its end was heard yet.
    await asyncio.to_thread(wait_until_dead, process.guard_pid)
    silent.heartbeat()
    await process.wait()
    silent.heartbeat()
    await silent.close()
    silent.heartbeat()


async def test_write_at_once_does_not_wait_for_room() -> None:
    reader, writer = os.pipe()
    pipe = PipeWriter(writer)
    try:
        size = 0
        while size < 1_000_000:
            pipe.write_at_once(b"x" * 4096)
            size += 4096
        assert 0 < len(os.read(reader, 1_000_000)) < size
        os.close(reader)
        reader = -1
        pipe.write_at_once(b"x")
    finally:
        pipe.close()
        if reader >= 0:
            os.close(reader)
    pipe.write_at_once(b"x")


@pytest.mark.parametrize("seconds", [0.0, float("nan"), float("inf")])
async def test_limit_without_seconds_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="silence_seconds_max"):
        ProcessLauncher(silence_seconds_max=seconds)

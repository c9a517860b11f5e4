"""No process of a program outlives its holder, its leader or its guard; a silent holder is lost."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from infrastructure.outbound.child_processes import guarded_process
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.child_processes.program import Exit, Program
from tests.support.servers.embedded_servers import PROJECT
from tests.support.servers.guarded_programs import (
    DAEMON,
    SILENCE_SECONDS,
    lines,
    python,
    started,
    touch,
)
from tests.support.servers.process_table import carrying, children, is_alive, state, until_dead
from tests.support.waiting import until

DAEMONS = DAEMON + "daemon()\ndaemon()\nprint(os.getpid(), flush=True)\nsignal.pause()"
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
    house = ProcessLauncher(silence_seconds_max=1.0)
    beating = asyncio.create_task(beat(house))
    unstarted = await house.open(Program(("/bin/touch", sys.argv[2]), {}, None, None))
    argv = (sys.executable, "-I", "-S", "-c", sys.argv[1])
    process = await house.open(Program(argv, {}, None, b"x" * 10**6))
    process.go()
    print(house.fork_server_pid, unstarted.guard_pid, process.guard_pid, flush=True)
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


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """Return the file that exists once a program was executed."""
    return tmp_path / "executed"


@pytest.fixture
def holder(mark: Path) -> Iterator["subprocess.Popen[str]"]:
    """Yield a process with a program, two daemons of it, and a program that waits for its start."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, DAEMONS, str(mark)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=PROJECT,
        env={"PYTHONPATH": str(PROJECT)},
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


async def held_by(holder: "subprocess.Popen[str]") -> list[int]:
    """Return the launcher's process, two guards and three processes of the program."""
    assert holder.stdout is not None
    pids: list[int] = []
    while len(pids) < 6:
        text = await asyncio.to_thread(holder.stdout.readline)
        assert text
        pids += [int(word) for word in text.split()]
    assert all(map(is_alive, pids))
    return pids


@pytest.mark.kill
async def test_killed_holder_takes_everything_with_it(
    holder: "subprocess.Popen[str]", mark: Path
) -> None:
    pids = await held_by(holder)
    holder.kill()
    await until_dead(*pids)
    assert not mark.exists()


@pytest.mark.kill
async def test_frozen_holder_loses_every_program_meanwhile(
    holder: "subprocess.Popen[str]", mark: Path
) -> None:
    _, *pids = await held_by(holder)
    os.kill(holder.pid, signal.SIGSTOP)
    await until_dead(*pids)
    assert state(holder.pid) == "T"
    os.kill(holder.pid, signal.SIGCONT)
    text, _ = await asyncio.to_thread(holder.communicate, "go\n", 20)
    assert text.splitlines() == [
        "True no heartbeat from the server: killed after 1 seconds",
        "True no heartbeat from the server: not executed within 1 seconds",
    ]
    assert holder.returncode == 0
    assert not mark.exists()


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


async def pass_seconds(seconds: float) -> None:
    began = time.monotonic()
    await until(lambda: time.monotonic() - began > seconds)


@pytest.mark.kill
async def test_heartbeats_keep_program_and_gate(silent: ProcessLauncher, mark: Path) -> None:
    async with beating(silent):
        began = time.monotonic()
        waiting = await silent.open(touch(mark))
        process = await started(silent, "sleep", str(SILENCE_SECONDS * 3))
        assert await process.wait() == Exit(code=0)
        assert time.monotonic() - began >= SILENCE_SECONDS * 3
        assert not mark.exists()
        waiting.go()
        assert await waiting.wait() == Exit(code=0)
    assert mark.exists()


@pytest.mark.kill
@pytest.mark.parametrize("is_beating", [False, True])
async def test_frozen_gate_executes_only_for_a_living_holder(
    silent: ProcessLauncher, mark: Path, is_beating: bool
) -> None:
    process = await silent.open(touch(mark))
    os.kill(process.guard_pid, signal.SIGSTOP)
    process.go()
    await pass_seconds(SILENCE_SECONDS * 1.2)
    os.kill(process.guard_pid, signal.SIGCONT)
    async with beating(silent) if is_beating else contextlib.nullcontext():
        ended = await asyncio.wait_for(process.wait(), 10)
    assert ended.killed is not is_beating
    assert mark.exists() is is_beating
    assert await process.kill() == ended


@pytest.mark.kill
async def test_suspended_machine_keeps_its_programs(silent: ProcessLauncher) -> None:
    async with beating(silent):
        process = await started(silent, "sleep", "60")
    os.kill(process.guard_pid, signal.SIGSTOP)
    await pass_seconds(SILENCE_SECONDS * 1.2)
    os.kill(process.guard_pid, signal.SIGCONT)
    # The holder is slower to wake than the guard.
    await pass_seconds(SILENCE_SECONDS / 4)
    async with beating(silent):
        with pytest.raises(TimeoutError):
            # To cancel the wait itself would kill it.
            await asyncio.wait_for(asyncio.shield(process.wait()), SILENCE_SECONDS * 2)


@pytest.mark.kill
async def test_silent_holder_without_limit_keeps_its_program(launcher: ProcessLauncher) -> None:
    process = await started(launcher, "sleep", str(SILENCE_SECONDS * 2))
    assert await asyncio.wait_for(process.wait(), 10) == Exit(code=0)


async def test_kill_ends_daemons_that_left_session_and_parent(launcher: ProcessLauncher) -> None:
    process = await started(launcher, *python(DAEMONS))
    pids = [int(line) for line in await lines(process, 3)]
    assert all(map(is_alive, pids))
    assert (await process.kill()).killed
    assert not any(map(is_alive, pids))
    assert await process.stdout.read() == b""


async def test_daemons_die_with_the_leader(launcher: ProcessLauncher) -> None:
    process = await started(launcher, *python(DAEMON + "daemon()\ndaemon()\nos._exit(5)"))
    daemons = [int(line) for line in await lines(process, 2)]
    assert await process.wait() == Exit(code=5)
    assert not any(map(is_alive, daemons))
    assert await process.stdout.read() == b""
    assert await process.stderr.read() == b""


async def test_orphans_are_reaped_while_the_leader_runs(launcher: ProcessLauncher) -> None:
    text = "import os, signal\nfor _ in range(3):\n if os.fork() == 0:\n  os.fork(); os._exit(0)\n"
    text += " os.wait()\nprint('up', flush=True)\nsignal.pause()"
    async with await started(launcher, *python(text)) as process:
        await lines(process, 1)
        await until(lambda: len(children(process.guard_pid)) == 1)


async def test_stopped_program_is_killed(launcher: ProcessLauncher) -> None:
    process = await started(launcher, "sh", "-c", "echo $$; kill -STOP $$; echo never")
    leader = int((await lines(process, 1))[0])
    await until(lambda: state(leader) == "T")
    assert (await process.kill()).killed
    assert not is_alive(leader)


async def test_killed_gate_takes_its_program_and_no_other(launcher: ProcessLauncher) -> None:
    bystander = await started(launcher, "sh", "-c", "echo up; read word; echo $word", stdin=b"x\n")
    await lines(bystander, 1)
    unopened = await launcher.open(Program(("/bin/echo", "later"), {}, None, None))
    process = await started(launcher, *python(DAEMONS))
    pids = [int(line) for line in await lines(process, 3)]
    os.kill(process.guard_pid, signal.SIGKILL)
    ended = await process.wait()
    assert ended.error == "the guard process died and the program with it"
    assert not ended.killed
    await until_dead(*pids)
    assert await process.stdout.read() == b""
    unopened.go()
    assert await unopened.wait() == Exit(code=0)
    assert await bystander.wait() == Exit(code=0)
    await unopened.stdout.read()


async def test_killed_gate_needs_no_warm_process(launcher: ProcessLauncher) -> None:
    process = await started(launcher, "sh", "-c", "echo $$; exec sleep 60")
    leader = int((await lines(process, 1))[0])
    assert launcher.fork_server_pid is not None
    os.kill(launcher.fork_server_pid, signal.SIGKILL)
    await until_dead(launcher.fork_server_pid)
    os.kill(process.guard_pid, signal.SIGKILL)
    await until_dead(leader)
    assert (await process.wait()).error is not None
    assert await process.stdout.read() == b""


async def test_gate_that_does_not_answer_is_killed(
    launcher: ProcessLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded_process, "KILL_SECONDS_MAX", 0.05)
    process = await started(launcher, *python(DAEMON + "daemon()\nsignal.pause()"))
    daemon = int((await lines(process, 1))[0])
    os.kill(process.guard_pid, signal.SIGSTOP)
    await until(lambda: state(process.guard_pid) == "T")
    assert (await process.kill()).killed
    await until_dead(process.guard_pid, daemon)


CHAIN = """
import os, sys, time
end = time.monotonic() + 30
os.write(1, b"up\\n")
while time.monotonic() < end:
    if os.fork():
        os._exit(0)
    if sys.argv[2] == "sessions":
        os.setsid()
"""

TREE = """
import os, signal, sys
for _ in range(6):
    if os.fork() == 0 and sys.argv[2] == "sessions":
        os.setsid()
os.write(1, b"up\\n")
signal.alarm(30)
signal.pause()
"""


@pytest.mark.kill
@pytest.mark.parametrize("manner", ["one-group", "sessions"])
async def test_storm_of_forks_and_exits_is_ended(launcher: ProcessLauncher, manner: str) -> None:
    token = f"chain-{os.getpid()}-{manner}"
    began = time.monotonic()
    process = await started(launcher, *python(CHAIN, token, manner))
    assert await process.wait() == Exit(code=0)
    assert carrying(token) == []
    # Later, the processes would have ended by themselves.
    assert time.monotonic() - began < 25


@pytest.mark.kill
@pytest.mark.parametrize("manner", ["one-group", "sessions"])
async def test_tree_of_64_processes_is_ended(launcher: ProcessLauncher, manner: str) -> None:
    token = f"tree-{os.getpid()}-{manner}"
    process = await started(launcher, *python(TREE, token, manner))
    await lines(process, 64)
    assert len(carrying(token)) == 64
    assert (await process.kill()).killed
    assert carrying(token) == []

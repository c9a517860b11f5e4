"""No process of a program outlives its holder, its leader or its gate."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from infrastructure.outbound.child_processes import guarded_process
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.child_processes.program import Exit, Program
from tests.support.servers.guarded_programs import DAEMON, lines, python, started
from tests.support.servers.process_table import (
    carrying,
    children,
    is_alive,
    state,
    until,
    until_dead,
)

HOLDER = """
import asyncio, sys
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.child_processes.program import Program

async def hold():
    house = ProcessLauncher()
    unstarted = await house.open(Program(("/bin/touch", sys.argv[2]), {}, None, None))
    argv = (sys.executable, "-I", "-S", "-c", sys.argv[1])
    process = await house.open(Program(argv, {}, None, b"x" * 10**6))
    process.go()
    print(house.fork_server_pid, unstarted.guard_pid, process.guard_pid, flush=True)
    while data := await process.stdout.read():
        print(data.decode(), end="", flush=True)

asyncio.run(hold())
"""


@pytest.mark.kill
async def test_a_killed_holder_takes_everything_with_it(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    program = DAEMON + "daemon()\ndaemon()\nprint(os.getpid(), flush=True)\nsignal.pause()"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, program, str(mark)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[4],
        env={"PYTHONPATH": str(Path(__file__).parents[4])},
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        pids: list[int] = []
        while len(pids) < 6:
            pids += [
                int(word) for word in (await asyncio.to_thread(holder.stdout.readline)).split()
            ]
        assert all(map(is_alive, pids))
        holder.kill()
    await until_dead(*pids)
    assert not mark.exists()


async def test_letting_go_ends_daemons_that_left_session_and_parent(
    launcher: ProcessLauncher,
) -> None:
    process = await started(launcher, *python(DAEMON + "daemon()\ndaemon()\nsignal.pause()"))
    daemons = [int(line) for line in await lines(process, 2)]
    assert all(map(is_alive, daemons))
    assert (await process.kill()).killed
    assert not any(map(is_alive, daemons))
    assert await process.stdout.read() == b""


async def test_daemons_die_with_the_leader_and_the_pipes_end(launcher: ProcessLauncher) -> None:
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


async def test_a_stopped_program_is_killed(launcher: ProcessLauncher) -> None:
    process = await started(launcher, "sh", "-c", "echo $$; kill -STOP $$; echo never")
    leader = int((await lines(process, 1))[0])
    await until(lambda: state(leader) == "T")
    assert (await process.kill()).killed
    assert not is_alive(leader)


async def test_a_killed_gate_takes_the_program_with_it(launcher: ProcessLauncher) -> None:
    process = await started(
        launcher, *python(DAEMON + "print(os.getpid(), flush=True)\ndaemon()\nsignal.pause()")
    )
    pids = [int(line) for line in await lines(process, 2)]
    os.kill(process.guard_pid, signal.SIGKILL)
    ended = await process.wait()
    assert ended.error == "the gate of the program died; the program was killed with it"
    assert not ended.killed
    await until_dead(*pids)
    assert await process.stdout.read() == b""


async def test_a_killed_gate_needs_no_warm_process_to_take_the_leader(
    launcher: ProcessLauncher,
) -> None:
    process = await started(launcher, "sh", "-c", "echo $$; exec sleep 60")
    leader = int((await lines(process, 1))[0])
    assert launcher.fork_server_pid is not None
    os.kill(launcher.fork_server_pid, signal.SIGKILL)
    await until_dead(launcher.fork_server_pid)
    os.kill(process.guard_pid, signal.SIGKILL)
    await until_dead(leader)
    assert (await process.wait()).error is not None
    assert await process.stdout.read() == b""


async def test_a_gate_that_does_not_answer_is_killed_with_its_program(
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
async def test_a_storm_of_forks_and_exits_is_ended(launcher: ProcessLauncher, manner: str) -> None:
    token = f"chain-{os.getpid()}-{manner}"
    began = time.monotonic()
    process = await started(launcher, *python(CHAIN, token, manner))
    assert await process.wait() == Exit(code=0)
    assert carrying(token) == []
    # Otherwise the storm has only passed.
    assert time.monotonic() - began < 25


@pytest.mark.kill
@pytest.mark.parametrize("manner", ["one-group", "sessions"])
async def test_a_tree_of_64_processes_is_ended(launcher: ProcessLauncher, manner: str) -> None:
    token = f"tree-{os.getpid()}-{manner}"
    process = await started(launcher, *python(TREE, token, manner))
    await lines(process, 64)
    assert len(carrying(token)) == 64
    assert (await process.kill()).killed
    assert carrying(token) == []


async def test_what_a_gate_leaves_alone_is_everybody_else(launcher: ProcessLauncher) -> None:
    """Two programs, and a daemon of the first: only the first one's processes die."""
    bystander = await started(launcher, "sh", "-c", "echo up; read word; echo $word", stdin=b"x\n")
    await lines(bystander, 1)
    unopened = await launcher.open(Program(("/bin/echo", "later"), {}, None, None))
    process = await started(launcher, *python(DAEMON + "daemon()\nsignal.pause()"))
    await lines(process, 1)
    os.kill(process.guard_pid, signal.SIGKILL)
    await process.wait()
    unopened.go()
    assert await unopened.wait() == Exit(code=0)
    assert await bystander.wait() == Exit(code=0)
    await unopened.stdout.read()

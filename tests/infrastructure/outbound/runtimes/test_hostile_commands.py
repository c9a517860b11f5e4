"""Commands that do not end, print too much, or ignore signals."""

import asyncio
import tracemalloc
from pathlib import Path

import pytest

from domain.configuration.runtimes import CommandRuntime
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.runtimes.command import (
    OUTPUT_BYTES_MAX,
    CommandRuntimes,
    CommandSession,
)
from tests.support.builders.launches import SERVER, all_of, command, launch, python_command, text_of
from tests.support.servers.guarded_programs import DAEMON
from tests.support.servers.process_table import (
    children,
    is_alive,
    open_descriptors,
    until_no_more_is_open,
)
from tests.support.waiting import until, wait_for

MIB = 1024 * 1024


@pytest.fixture
def runtimes(launcher: ProcessLauncher, tmp_path: Path) -> CommandRuntimes:
    return CommandRuntimes(launcher, server=SERVER, folder=str(tmp_path))


async def started(runtimes: CommandRuntimes, runtime: CommandRuntime) -> CommandSession:
    session = await runtimes.open(launch(runtime))
    session.go()
    return session


async def first_number(session: CommandSession) -> int:
    return int(str((await anext(session.entries())).body["text"]))


async def test_hanging_child_is_killed_with_its_daemon(runtimes: CommandRuntimes) -> None:
    session = await started(runtimes, python_command(DAEMON + "daemon()\nsignal.pause()"))
    daemon = await first_number(session)
    assert is_alive(daemon)
    await session.kill()
    assert not is_alive(daemon)
    assert (await session.end()).outcome == "stopped"


@pytest.mark.kill
async def test_child_may_close_its_output_and_work_on(runtimes: CommandRuntimes) -> None:
    session = await started(
        runtimes, command("sh", "-c", "echo $$; exec >&- 2>&-; sleep 0.2; exit 4")
    )
    entries = [entry async for entry in session.entries()]
    assert not is_alive(int(text_of(entries)))
    assert (await session.end()).exit_code == 4


async def test_last_words_are_heard_by_a_busy_server(
    runtimes: CommandRuntimes, launcher: ProcessLauncher
) -> None:
    script = "head -c 60000 /dev/zero | tr '\\0' o; echo last words >&2; exit 1"
    session = await runtimes.open(launch(command("sh", "-c", script)))
    warm = launcher.fork_server_pid
    assert warm is not None
    session.go()
    # On the event loop, to block it on purpose.
    wait_for("the end of the child", lambda: not children(warm), seconds=10)
    entries, end = await all_of(session)
    assert text_of(entries) == "o" * 60_000
    assert end.error == "exited with code 1: last words"


@pytest.mark.kill
async def test_pipe_held_by_stranger_does_not_delay_the_end(
    runtimes: CommandRuntimes, tmp_path: Path
) -> None:
    # The stranger takes both ends over through /proc, and so is none of the child's descendants.
    text = "import os, signal\nprint(os.getpid(), flush=True)\nsignal.pause()"
    session = await started(runtimes, python_command(text))
    child = await first_number(session)
    with open(f"/proc/{child}/fd/1", "wb"), open(f"/proc/{child}/fd/2", "wb"):
        ending = asyncio.create_task(all_of(session))
        await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await session.kill()
            entries, end = await ending
    assert (entries, end.outcome) == ([], "stopped")


@pytest.mark.kill
async def test_fifty_megabytes_pass_in_bounded_memory(runtimes: CommandRuntimes) -> None:
    text = "import sys\nfor _ in range(800): sys.stdout.write('0123456789abcde\\n' * 4096)"
    session = await started(runtimes, python_command(text))
    total = 0
    tracemalloc.start()
    try:
        async for entry in session.entries():
            total += len(str(entry.body["text"]))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    end = await session.end()
    assert total == 800 * 4096 * 16
    assert (end.outcome, len(end.result or "")) == ("success", MIB - 1)
    assert peak < 8 * MIB


@pytest.mark.kill
async def test_child_that_is_not_read_waits(runtimes: CommandRuntimes, tmp_path: Path) -> None:
    text = """
import os, sys
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for _ in range(1000):
    os.write(1, b'x' * 9999 + b'\\n')
    os.write(log, b'.')
"""
    written = tmp_path / "written"
    session = await started(runtimes, python_command(text, str(written)))
    await anext(session.entries())
    sizes: list[int] = []

    def no_longer_grows() -> bool:
        sizes.append(written.stat().st_size)
        return len(sizes) > 50 and len(set(sizes[-50:])) == 1

    await until(no_longer_grows)
    assert 0 < sizes[-1] < 100
    await session.end()
    assert written.stat().st_size == 1000


@pytest.mark.kill
async def test_endless_output_is_ended_at_its_limit(runtimes: CommandRuntimes) -> None:
    await (await runtimes.open(launch(command("true")))).kill()  # Starts the fork server.
    before = open_descriptors()
    session = await started(runtimes, command("yes", "x" * 4000))
    size = 0
    async for entry in session.entries():
        size += len(str(entry.body["text"]))
    end = await session.end()
    assert OUTPUT_BYTES_MAX - 65_536 <= size <= OUTPUT_BYTES_MAX
    assert (end.outcome, end.reason) == ("error", "output_limit")
    assert end.error == "ended because it printed more than 67108864 bytes"
    await until_no_more_is_open(before)


async def test_endless_line_is_ended_at_its_limit(runtimes: CommandRuntimes) -> None:
    script = 'echo before; tr "\\0" x </dev/zero'
    session = await started(runtimes, command("sh", "-c", script, output="jsonl"))
    entries, end = await all_of(session)
    assert text_of(entries) == "before"
    assert (end.outcome, end.reason) == ("error", "output_limit")
    assert end.error is not None
    assert "a line of more than 1048576 bytes" in end.error

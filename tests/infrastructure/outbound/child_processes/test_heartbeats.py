"""Heartbeats of a holder to its programs."""

import asyncio
import os
import signal

import pytest

from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.child_processes.pipes import PipeWriter
from infrastructure.outbound.child_processes.program import Exit, Program
from tests.support.servers.guarded_programs import python, started
from tests.support.servers.process_table import (
    wait_until_dead,
)


async def test_heartbeats_do_not_come_between_the_parts_of_a_large_specification(
    silent: ProcessLauncher,
) -> None:
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


async def test_a_heartbeat_passes_over_what_has_ended_or_is_full(silent: ProcessLauncher) -> None:
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


async def test_what_is_sent_at_once_or_never_does_not_wait_for_room() -> None:
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


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
async def test_a_limit_that_is_no_positive_number_of_seconds_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="silence_seconds_max"):
        ProcessLauncher(silence_seconds_max=seconds)

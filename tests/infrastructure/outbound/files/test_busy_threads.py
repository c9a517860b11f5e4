"""Attachments do not wait for the threads that everybody else works in."""

import asyncio
import threading
from pathlib import Path

from application.steps.step import STEPS_AT_ONCE_MAX
from tests.support.builders.folders import FILES, OTHER_RUN, RUN, SECONDS, ground_in

THREADS = 40
"""More than the event loop has for everybody."""


async def test_files_are_written_and_removed_while_all_other_threads_are_busy(
    tmp_path: Path,
) -> None:
    ground, go_on = ground_in(tmp_path), threading.Event()
    others = [asyncio.create_task(asyncio.to_thread(go_on.wait, SECONDS)) for _ in range(THREADS)]
    try:
        await asyncio.wait_for(ground.write(), SECONDS / 2)
        assert await asyncio.wait_for(ground.remove(), SECONDS / 2) == "undone"
    finally:
        go_on.set()
        await asyncio.gather(*others)


async def test_removing_waits_for_a_thread_without_using_up_its_time(tmp_path: Path) -> None:
    """However many others are removed before it on a disk that is slow."""
    ground = ground_in(tmp_path)
    many = STEPS_AT_ONCE_MAX * 10
    runs = [RUN, OTHER_RUN] * (many // 2)
    await ground.write()
    removed = await asyncio.gather(
        *(ground.files.remove(ground.root, run, timeout_seconds=SECONDS) for run in runs)
    )
    assert removed.count("undone") == 1


async def test_no_thread_is_left_when_the_files_are_closed(tmp_path: Path) -> None:
    ground, before = ground_in(tmp_path), set(threading.enumerate())
    await ground.write(FILES)
    await ground.remove()
    ground.files.close()
    for one in set(threading.enumerate()) - before:
        await asyncio.to_thread(one.join, SECONDS)
        assert not one.is_alive()

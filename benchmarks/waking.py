"""Delay until a process that waits for the log sees a commit of another process."""

import asyncio
import time

from benchmarks.appending import Admissions, opened_log
from benchmarks.report import Figure, percentile

TIMES = 300
WAIT_SECONDS = 30.0


async def measured_waking(conninfo: str) -> list[Figure]:
    """Measure two logs, as in two processes: one writes, one waits.

    The time begins when the writer's caller has its answer, after the commit.
    """
    async with opened_log(conninfo) as writing, opened_log(conninfo) as waiting:
        admissions = Admissions(writing, "waking")
        seconds: list[float] = []
        for _ in range(TIMES):
            position = await writing.head()
            waiter = asyncio.create_task(
                waiting.tail.changed((), after=position, timeout_seconds=WAIT_SECONDS)
            )
            await admissions.admit()
            committed = time.perf_counter()
            if not await waiter:
                raise RuntimeError("nobody was woken by an append")
            seconds.append(time.perf_counter() - committed)
    ordered = sorted(seconds)
    note = f"of {TIMES} appends of another writer"
    return [
        Figure("woken after a commit, p50", "ms", round(percentile(ordered, 0.5) * 1000, 2), note),
        Figure("woken after a commit, p99", "ms", round(percentile(ordered, 0.99) * 1000, 2)),
    ]

"""Measuring processes, whose callers are tasks of one event loop."""

import asyncio
import multiprocessing
from collections.abc import AsyncIterator, Awaitable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from types import TracebackType
from typing import Literal, Self

import uvloop

from benchmarks.appending import Admissions, opened_log
from benchmarks.floor import Copies, Floor, TableRows
from benchmarks.load import Act, Connection, Measured, Spawner, Talker, measure
from infrastructure.server.lifecycle import tune_garbage_collector

PROCESSES_MAX = 2
TOGETHER_SECONDS_MAX = 60.0
FLOOR_POSITIONS = 10**9
"""Range of positions for one job of the floor."""

Kind = Literal["spawns", "lives", "messages", "appends", "floor"]


@dataclass(frozen=True, slots=True)
class Job:
    """Work of one process: `callers` concurrent acts for `seconds`.

    Attributes:
        number: Unique number of the job.
        urls: Servers for spawns; callers take them in turn.
        token: Token for the servers.
        conninfo: Database of appends and of the floor.
        rows: Rows that the floor copies.
    """

    kind: Kind
    number: int
    callers: int
    seconds: float
    urls: tuple[str, ...] = ()
    token: str = ""
    conninfo: str = ""
    rows: tuple[TableRows, ...] = ()


class Clients:
    """A few processes, started once."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        barrier = context.Barrier(PROCESSES_MAX)
        self._pool = ProcessPoolExecutor(
            PROCESSES_MAX, mp_context=context, initializer=_begin, initargs=(barrier,)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown()

    def measured(self, jobs: Sequence[Job]) -> Measured:
        """Run all jobs concurrently, one process each. Return the combined figures."""
        together = len(jobs) == PROCESSES_MAX
        futures = [self._pool.submit(_done, job, together) for job in jobs]
        done = [future.result() for future in futures]
        return Measured(
            [latency for measured in done for latency in measured.latencies],
            max(measured.seconds for measured in done),
            sum(measured.client_cpu for measured in done) / len(done),
        )


_barrier: Barrier | None = None


def _begin(barrier: Barrier) -> None:
    global _barrier
    _barrier = barrier
    # As in a server, the writer shares this process, and the floor gets the same conditions.
    tune_garbage_collector()


def _done(job: Job, together: bool) -> Measured:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measured(job, together))


async def _measured(job: Job, together: bool) -> Measured:
    async with _acts(job) as acts:
        await asyncio.gather(*(act() for act in acts))
        if together:
            assert _barrier is not None
            await asyncio.to_thread(_barrier.wait, TOGETHER_SECONDS_MAX)
        return await measure(acts, job.seconds)


@asynccontextmanager
async def _acts(job: Job) -> AsyncIterator[list[Act]]:
    """Yield one act per caller, with the connections that they need."""
    if job.kind == "appends":
        async with opened_log(job.conninfo) as log:
            yield [Admissions(log, f"{job.number}").admit] * job.callers
    elif job.kind == "floor":
        copies = Copies(job.rows, first=1 + job.number * FLOOR_POSITIONS)
        floor = Floor(job.conninfo, copies, job.callers)
        await floor.open()
        try:
            yield [floor.write] * job.callers
        finally:
            await floor.close()
    else:
        async with AsyncExitStack() as opened:
            coming: list[Awaitable[Act]] = []
            for caller in range(job.callers):
                connection = Connection(job.urls[caller % len(job.urls)], job.token)
                await connection.open()
                opened.push_async_callback(connection.close)
                coming.append(_act(job, connection, f"{job.number}-{caller}"))
            yield list(await asyncio.gather(*coming))


async def _act(job: Job, connection: Connection, name: str) -> Act:
    if job.kind == "messages":
        talker = Talker(connection, name)
        await talker.begin()
        return talker.message
    spawner = Spawner(connection, name)
    return spawner.life if job.kind == "lives" else spawner.spawn

"""Build of the new tables, up to the point from which they only have to keep up with the log."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

from infrastructure.contract.operations import OnProgress, RebuildProgress
from infrastructure.outbound.log.read.fold_input import StreamPart
from infrastructure.outbound.log.rebuild import fold_part, tables
from infrastructure.outbound.log.rebuild.compare import count_differing_rows
from infrastructure.outbound.log.rebuild.fold_part import PartFold
from infrastructure.outbound.log.rebuild.worker import fold_in_process
from infrastructure.outbound.log.schema.connections import LogConnection

PARTS = 2
"""Number of folding processes; the database's own work occupies further cores."""


PROCESSES_FROM_EVENTS = 20_000
"""Fewer events are folded in this process, before another one would have started."""


ROUNDS_MAX = 20
ConnectionFactory = Callable[[], AbstractAsyncContextManager[LogConnection]]


async def head_of(connection: LogConnection) -> int:
    """Return the last position of the log."""
    row = await (await connection.execute("SELECT position FROM log_head")).fetchone()
    assert row is not None
    return int(row[0])


class TableBuild:
    """The work before the table swap. `connected` opens further connections; worker processes
    connect with `conninfo`."""

    def __init__(
        self,
        connected: ConnectionFactory,
        working: LogConnection,
        conninfo: str,
        on_progress: OnProgress,
    ) -> None:
        self._connected = connected
        self._working = working
        self._conninfo = conninfo
        self._on_progress = on_progress
        self._positions: dict[StreamPart, int] = {}
        self._began = 0
        self.shape = ""
        self.folds: list[PartFold] = []

    async def begin(self) -> None:
        """Resume an earlier rebuild if it has the same shape, otherwise start a new one."""
        self.shape = await tables.shape(self._working)
        found = await tables.positions(self._working, self.shape)
        self._positions = found or await tables.create(self._working, self.shape, PARTS)
        self._began = self._done()

    async def fold_the_bulk(self) -> int:
        """Fold until few new events arrive during a round, while no indexes have to be maintained.
        Return the position that was reached."""
        head = await head_of(self._working)
        for _ in range(ROUNDS_MAX):
            self._report(head)
            await self._fold_up_to(head)
            before, head = head, await head_of(self._working)
            if head - before <= fold_part.PAGE_EVENTS:
                break
        return before

    async def _fold_up_to(self, head: int) -> None:
        if head - min(self._positions.values()) >= PROCESSES_FROM_EVENTS:
            await _run_all(
                self._fold_in_worker(part, position, head)
                for part, position in self._positions.items()
            )
        self.folds = [
            PartFold(self._working, part, position, page_events=fold_part.PAGE_EVENTS)
            for part, position in self._positions.items()
        ]
        for part, fold in zip(self._positions, self.folds, strict=True):
            async for page in fold.pages(head):
                self._moved(part, page.upto, head)

    async def _fold_in_worker(self, part: StreamPart, position: int, until: int) -> None:
        await fold_in_process(
            self._conninfo,
            part,
            position,
            until,
            page_events=fold_part.PAGE_EVENTS,
            on_position=lambda upto: self._moved(part, upto, until),
        )

    def _moved(self, part: StreamPart, upto: int, head: int) -> None:
        self._positions[part] = upto
        self._report(head)

    def _report(self, head: int) -> None:
        self._on_progress(RebuildProgress("events", self._done(), head, self._began))

    def _done(self) -> int:
        """Return the approximate number of folded events: each part has an equal share of them."""
        return sum(self._positions.values()) // len(self._positions)

    async def make_indexes(self) -> None:
        """Build the indexes that the live tables have, two at a time."""
        indexes = await tables.indexes_of(self._working)
        waiting = list(reversed(indexes))
        made = 0

        async def make_on(connection: LogConnection) -> None:
            nonlocal made
            while waiting:
                self._on_progress(RebuildProgress("indexes", made, len(indexes)))
                await tables.build(connection, waiting.pop())
                made += 1

        async with self._connected() as second:
            await _run_all(make_on(connection) for connection in (self._working, second))

    async def compare_rows(self, at: int, *, compare: bool) -> int | None:
        """Return the number of live rows that differ from the rebuilt ones as of position `at`, or
        None without `compare`. Meanwhile, analyze the new tables."""
        found: int | None = None

        async def look() -> None:
            nonlocal found
            if compare:
                found = await count_differing_rows(self._working, at)

        async with self._connected() as second:
            await _run_all((look(), tables.analyze(second)))
        return found


async def _run_all(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run the coroutines concurrently. The first failure cancels the others and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None

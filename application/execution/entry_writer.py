"""Writes a child's output to its transcript: in batches, or at once for a reader."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace

from application.log.retry import retry_while_unavailable
from application.ports.runtimes import TranscriptEntry

FLUSH_ENTRIES = 200
FLUSH_SECONDS = 0.5
"""Maximum delay between the arrival of an entry and its write. Readers at any server see it within
a second."""
FLUSH_CHARACTERS = 64 * 1024
READY_TURNS = 16
"""Turns of the event loop in which output that is ready to read becomes entries."""
END_SECONDS_MAX = 5.0

Append = Callable[[int, Sequence[TranscriptEntry]], Awaitable[bool]]


class EntryWriter:
    """Batching writer of a run's entries, from number `written` + 1 on.

    Args:
        append: Writes entries from a number on. Returns False if the claim was replaced.
        written: Number of the last entry already written.
        keeps_for_end: If the run ends before the first batch is due, leave its entries in
            `unwritten`, for the append of the end.
        given_up: Returns True when retries are to stop.
    """

    def __init__(
        self,
        append: Append,
        *,
        written: int,
        keeps_for_end: bool,
        given_up: Callable[[], bool],
    ) -> None:
        self.unwritten: list[TranscriptEntry] | None = None
        self._append = append
        self._written = written
        self._may_keep = keeps_for_end
        self._given_up = given_up
        self._pending: list[TranscriptEntry] = []
        self._characters = 0
        self._is_fenced = False
        self._one_at_a_time = asyncio.Lock()
        self._due = asyncio.Event()
        self._room = asyncio.Event()
        self._over = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    async def write(self, entries: AsyncIterator[TranscriptEntry]) -> bool:
        """Write entries until the iterator ends. Return False as soon as the claim was replaced.

        If `entries` raises, write the entries before the error, then raise it.
        """
        reading = asyncio.create_task(self._take(entries))
        reading.add_done_callback(lambda _: self._due.set())
        try:
            while not reading.done():
                await self._due.wait()
                self._due.clear()
                if reading.done():
                    break
                if not await self._write_or_retry():
                    return False
            is_whole = reading.exception() is None
            if not (is_whole and await self._is_kept()) and not await self._write_or_retry():
                return False
            reading.result()
            return True
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            if self._timer is not None:
                self._timer.cancel()

    async def write_ready(self, entries: Sequence[TranscriptEntry]) -> bool:
        """Take all entries of a run that has ended: write many, leave few to the append of the end.

        Return False if the claim was replaced.
        """
        now = asyncio.get_running_loop().time()
        self._pending = [replace(entry, arrived_at=now) for entry in entries]
        self._characters = sum(map(_characters, self._pending))
        if not self._is_full() and await self._is_kept():
            return True
        return await self._write_or_retry()

    async def flush(self) -> None:
        """Write all entries that have arrived. If the append of the end writes them, wait for
        it."""
        for _ in range(READY_TURNS):
            await asyncio.sleep(0)
        if self.unwritten is None:
            await self._write_pending()
        if self.unwritten:
            try:
                async with asyncio.timeout(END_SECONDS_MAX):
                    await self._over.wait()
            except TimeoutError:
                return

    def end(self) -> None:
        """Wake flushes: the end of the run is recorded, or another process records it."""
        self._over.set()

    async def _take(self, entries: AsyncIterator[TranscriptEntry]) -> None:
        loop = asyncio.get_running_loop()
        async for entry in entries:
            if not self._pending:
                self._timer = loop.call_later(FLUSH_SECONDS, self._due.set)
            self._pending.append(replace(entry, arrived_at=loop.time()))
            self._characters += _characters(entry)
            while self._is_full():
                self._due.set()
                self._room.clear()
                await self._room.wait()

    def _is_full(self) -> bool:
        return len(self._pending) >= FLUSH_ENTRIES or self._characters >= FLUSH_CHARACTERS

    async def _is_kept(self) -> bool:
        """Return True if all entries are left to the append of the end."""
        async with self._one_at_a_time:
            if self._may_keep:
                self.unwritten = self._pending
            return self._may_keep

    async def _write_or_retry(self) -> bool:
        return await retry_while_unavailable(self._write_pending, given_up=self._given_up)

    async def _write_pending(self) -> bool:
        async with self._one_at_a_time:
            batch = list(self._pending)
            if self._is_fenced or not batch or self.unwritten is not None:
                return not self._is_fenced
            # The rows may be written even if the call fails.
            self._may_keep = False
            self._is_fenced = not await self._append(self._written + 1, batch)
            del self._pending[: len(batch)]
            self._written += len(batch)
            self._characters = sum(map(_characters, self._pending))
            self._room.set()
            if self._timer is not None:
                self._timer.cancel()
            if self._pending:
                due_at = (self._pending[0].arrived_at or 0.0) + FLUSH_SECONDS
                self._timer = asyncio.get_running_loop().call_at(due_at, self._due.set)
            return not self._is_fenced


def _characters(entry: TranscriptEntry) -> int:
    return sum(len(value) for value in entry.body.values() if isinstance(value, str))

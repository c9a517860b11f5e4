"""What a child that runs in this process says, on its way to who writes it down."""

import asyncio

from application.ports.runtimes import TranscriptEntry
from domain.delivery.transcript import LINE_BYTES_MAX, ParsedEntry, RuntimeReading
from infrastructure.outbound.masking.mask import Masker
from infrastructure.outbound.runtimes.command_output import entry_of

WAITING_MAX = 16
OUTPUT_BYTES_MAX = 64 * 1024 * 1024


class OutputLimitPassed(Exception):
    """It said more than it may; the text says which limit that was."""


class EntryQueue:
    """Entries in order, masked and counted. Who says them waits while too many are unread."""

    def __init__(self, masking: Masker) -> None:
        self.reading = RuntimeReading()
        self._masking = masking
        self._room = asyncio.Semaphore(WAITING_MAX)
        self._waiting: asyncio.Queue[TranscriptEntry | None] = asyncio.Queue()
        self._bytes = 0
        self._is_finished = False

    def __aiter__(self) -> "EntryQueue":
        return self

    async def put(self, entry: ParsedEntry) -> None:
        """Say this when there is room. Raises `OutputLimitPassed`; a teller that is cancelled has
        said it all the same."""
        counted = self._counted(entry)
        try:
            await self._room.acquire()
        finally:
            self._waiting.put_nowait(counted)

    def put_last(self, entry: ParsedEntry) -> None:
        """Say this without waiting, as the end does, so far as it may still be said."""
        try:
            self._waiting.put_nowait(self._counted(entry))
        except OutputLimitPassed:
            return

    def finish(self) -> None:
        """Nothing comes behind what was told."""
        self._waiting.put_nowait(None)

    async def __anext__(self) -> TranscriptEntry:
        """The next entry when it is there. One who is cancelled has taken nothing."""
        if self._is_finished:
            raise StopAsyncIteration
        entry = await self._waiting.get()
        if entry is None:
            self._is_finished = True
            # Another one may wait for it too.
            self._waiting.put_nowait(None)
            raise StopAsyncIteration
        self._room.release()
        return entry

    def _counted(self, entry: ParsedEntry) -> TranscriptEntry:
        masked = self._masking.entry(entry)
        told = entry_of(masked)
        size = sum(len(one.encode()) for one in told.body.values() if isinstance(one, str))
        if size > LINE_BYTES_MAX:
            raise OutputLimitPassed(f"it said more than {LINE_BYTES_MAX} bytes in one entry")
        self._bytes += size
        if self._bytes > OUTPUT_BYTES_MAX:
            raise OutputLimitPassed(f"it said more than {OUTPUT_BYTES_MAX} bytes")
        self.reading = self.reading.after(masked)
        return told

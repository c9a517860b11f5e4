"""Queue of the entries of an in-process child, on their way to the transcript."""

import asyncio

from application.ports.runtimes import TranscriptEntry
from domain.delivery.transcript import LINE_BYTES_MAX, ParsedEntry, RuntimeReading
from infrastructure.outbound.masking.mask import Masker
from infrastructure.outbound.runtimes.command_output import entry_of

WAITING_MAX = 16
OUTPUT_BYTES_MAX = 64 * 1024 * 1024


class OutputLimitError(Exception):
    """The child exceeded an output limit. The text says which."""


class EntryQueue:
    """Bounded queue of entries, in order, masked and counted.

    Iterate over it to read the entries.
    """

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
        """Add an entry; wait while the queue is full.

        The entry is added even if this call is cancelled.

        Raises:
            OutputLimitError: The entry, or the output as a whole, is too large.
        """
        counted = self._counted(entry)
        try:
            await self._room.acquire()
        finally:
            self._waiting.put_nowait(counted)

    def put_last(self, entry: ParsedEntry) -> None:
        """Add an entry without waiting, at the end. Drop it if it exceeds a limit."""
        try:
            self._waiting.put_nowait(self._counted(entry))
        except OutputLimitError:
            return

    def finish(self) -> None:
        """Mark the end of the entries."""
        self._waiting.put_nowait(None)

    async def __anext__(self) -> TranscriptEntry:
        """Wait for the next entry. A cancelled call takes none."""
        if self._is_finished:
            raise StopAsyncIteration
        entry = await self._waiting.get()
        if entry is None:
            self._is_finished = True
            # Put the end mark back for other readers.
            self._waiting.put_nowait(None)
            raise StopAsyncIteration
        self._room.release()
        return entry

    def _counted(self, entry: ParsedEntry) -> TranscriptEntry:
        masked = self._masking.entry(entry)
        counted = entry_of(masked)
        size = sum(len(text.encode()) for text in counted.body.values() if isinstance(text, str))
        if size > LINE_BYTES_MAX:
            raise OutputLimitError(f"it wrote more than {LINE_BYTES_MAX} bytes in one entry")
        self._bytes += size
        if self._bytes > OUTPUT_BYTES_MAX:
            raise OutputLimitError(f"it wrote more than {OUTPUT_BYTES_MAX} bytes")
        self.reading = self.reading.after(masked)
        return counted

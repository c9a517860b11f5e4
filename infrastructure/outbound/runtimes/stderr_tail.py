"""The last of what a program prints to stderr."""

import codecs
from functools import partial
from threading import Lock

from infrastructure.outbound.child_processes.pipes import PipeReader
from infrastructure.outbound.redaction.mask import NO_MASKING, MaskedText, Masker
from infrastructure.outbound.runtimes.output_threads import OutputThreads


class StderrTail:
    """Reads all of it and keeps the last `bytes_max` bytes, masked: masked before anything is
    dropped, so that no credential is cut before it is found."""

    def __init__(
        self,
        pipe: PipeReader,
        bytes_max: int,
        threads: OutputThreads,
        masking: Masker = NO_MASKING,
    ) -> None:
        self._pipe = pipe
        self._bytes_max = bytes_max
        self._threads = threads
        self._one_at_a_time = Lock()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._masked = MaskedText(masking)
        self._kept = bytearray()

    async def fill(self) -> None:
        """Until the end of the pipe."""
        while data := await self._pipe.read():
            await self._threads.look(len(data), partial(self._take, data))

    def close(self) -> None:
        """Gives up what was not read. May be called again."""
        self._pipe.close()

    def text(self) -> str:
        """What was kept; undecodable bytes are replaced. Nothing is read after it is asked for."""
        with self._one_at_a_time:
            rest = self._decoder.decode(b"", final=True)
            self._keep(self._masked.take(rest) + self._masked.finish())
            return self._kept.decode(errors="ignore")

    def _take(self, data: bytes) -> None:
        # Whoever waited for it may have given up: then `text` waits for it.
        with self._one_at_a_time:
            self._keep(self._masked.take(self._decoder.decode(data)))

    def _keep(self, text: str) -> None:
        self._kept += text.encode(errors="replace")
        del self._kept[: -self._bytes_max]

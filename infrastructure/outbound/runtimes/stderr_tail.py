"""The last of what a program prints to stderr."""

from infrastructure.outbound.processes.pipes import PipeReader


class StderrTail:
    """Reads all of it and keeps the last `bytes_max` bytes."""

    def __init__(self, pipe: PipeReader, bytes_max: int) -> None:
        self._pipe = pipe
        self._bytes_max = bytes_max
        self._kept = bytearray()

    async def fill(self) -> None:
        """Until the end of the pipe."""
        while data := await self._pipe.read():
            self._kept += data
            del self._kept[: -self._bytes_max]

    def close(self) -> None:
        """Gives up what was not read. May be called again."""
        self._pipe.close()

    def text(self) -> str:
        """What was kept; undecodable bytes are replaced."""
        return self._kept.decode(errors="replace")

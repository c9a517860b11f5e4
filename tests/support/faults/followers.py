"""Followers of a log in the background, which keep the events that they see."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from application.log.envelope import RecordedEvent
from application.log.event_log import LogUnavailableError
from infrastructure.outbound.log.read.tail import LogTail
from tests.support.waiting import until


class Follower:
    """Background follower of a log that keeps the events."""

    def __init__(self, followed: LogTail, after: int = 0) -> None:
        self.seen: list[RecordedEvent] = []
        self._task = asyncio.create_task(self._follow(followed, after))

    async def _follow(self, followed: LogTail, after: int) -> None:
        async for events in followed.follow(after=after):
            self.seen += events

    @property
    def positions(self) -> list[int]:
        """Return the positions of the events."""
        return [recorded.envelope.position for recorded in self.seen]

    async def has(self, events: int) -> None:
        """Wait until it has seen this number of events."""

        async def so_many() -> bool:
            return len(self.seen) >= events

        await until(so_many, f"{events} events are seen")

    def write_down(self, notes: Path) -> None:
        """Write position, id and chain hash of each event, one per line."""
        envelopes = [recorded.envelope for recorded in self.seen]
        lines = [
            f"{envelope.position} {envelope.event_id} {envelope.chain_hash.hex()}\n"
            for envelope in envelopes
        ]
        notes.write_text("".join(lines), "utf-8")

    async def leave(self) -> None:
        """Stop following. Raise if the log could not be followed until now."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def is_told(self) -> str:
        """Return the error with which following the log failed."""
        with pytest.raises(LogUnavailableError) as failure:
            await self._task
        self._task = asyncio.create_task(asyncio.sleep(0))
        return str(failure.value)


@asynccontextmanager
async def following(followed: LogTail, after: int = 0) -> AsyncIterator[Follower]:
    """Yield a follower until the end of the block."""
    follower = Follower(followed, after)
    try:
        yield follower
    finally:
        await follower.leave()

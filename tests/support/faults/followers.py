"""Those who follow a log in the background, and keep what they saw."""

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
    """Follows a log in the background and keeps what it saw."""

    def __init__(self, followed: LogTail, after: int = 0) -> None:
        self.seen: list[RecordedEvent] = []
        self._task = asyncio.create_task(self._follow(followed, after))

    async def _follow(self, followed: LogTail, after: int) -> None:
        async for events in followed.follow(after=after):
            self.seen += events

    @property
    def positions(self) -> list[int]:
        """What it saw, by position."""
        return [recorded.envelope.position for recorded in self.seen]

    async def has(self, events: int) -> None:
        """Wait until it has seen so many."""

        async def so_many() -> bool:
            return len(self.seen) >= events

        await until(so_many, f"{events} events are seen")

    def write_down(self, notes: Path) -> None:
        """What it saw, an event a line: its position, its id and its chain hash."""
        envelopes = [recorded.envelope for recorded in self.seen]
        lines = [f"{one.position} {one.event_id} {one.chain_hash.hex()}\n" for one in envelopes]
        notes.write_text("".join(lines), "utf-8")

    async def leave(self) -> None:
        """Stop following. A log that could not be followed to here is told of."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def is_told(self) -> str:
        """What it was told when the log could not be followed any more."""
        with pytest.raises(LogUnavailableError) as told:
            await self._task
        self._task = asyncio.create_task(asyncio.sleep(0))
        return str(told.value)


@asynccontextmanager
async def following(followed: LogTail, after: int = 0) -> AsyncIterator[Follower]:
    """A follower until the end of the block."""
    follower = Follower(followed, after)
    try:
        yield follower
    finally:
        await follower.leave()

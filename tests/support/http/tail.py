"""Log that grows when a test says so, for streams without a server."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import UTC, datetime
from uuid import UUID, uuid4

from application.log.envelope import WRITER_VERSION, Envelope, Provenance, RecordedEvent
from domain.run.events import RunQueued


def event_at(position: int, *, run_id: UUID | None = None) -> RecordedEvent:
    """Return an ordinary event."""
    now = datetime.now(UTC)
    envelope = Envelope(
        position=position,
        stream=f"run:{run_id}",
        version=position,
        type="RunQueued",
        type_version=1,
        recorded_at=now,
        occurred_at=now,
        event_id=uuid4(),
        command_id=uuid4(),
        provenance=Provenance(run_id=run_id),
        writer_version=WRITER_VERSION,
        append_last=position,
        chain_hash=bytes(32),
    )
    return RecordedEvent(envelope, RunQueued(lane="subagent", lane_depth=1))


class GrowingLog:
    """Implements `Tail`. `grow` adds events, `break_off` makes the log unreadable for its
    followers.
    """

    def __init__(self) -> None:
        self._events: list[RecordedEvent] = []
        self._news = asyncio.Condition()
        self._broken: Exception | None = None
        self.read = 0

    @property
    def position(self) -> int:
        """Return the last position."""
        return len(self._events)

    def end_since(self, moment: float) -> int | None:
        return None

    def newest(self, _: UUID) -> None:
        """Return None: no run is known."""

    async def grow(self, count: int = 1, *, run_id: UUID | None = None) -> None:
        """Append events."""
        async with self._news:
            for _ in range(count):
                self._events.append(event_at(len(self._events) + 1, run_id=run_id))
            self._news.notify_all()

    async def break_off(self, error: Exception) -> None:
        """Let every reader fail with this error."""
        async with self._news:
            self._broken = error
            self._news.notify_all()

    async def changed(
        self,
        run_ids: Collection[UUID],
        *,
        after: int,
        timeout_seconds: float,
        types: Collection[str] = (),
        stopped: asyncio.Future[None] | None = None,
    ) -> bool:
        """Wait for growth."""
        try:
            async with asyncio.timeout(timeout_seconds), self._news:
                await self._news.wait_for(lambda: self.position > after)
        except TimeoutError:
            return False
        return True

    async def follow(self, *, after: int) -> AsyncIterator[Sequence[RecordedEvent]]:
        """Yield every event after `after`, one by one."""
        position = after
        while True:
            async with self._news:
                await self._news.wait_for(
                    lambda: len(self._events) > position or self._broken is not None  # noqa: B023
                )
            if len(self._events) == position:
                assert self._broken is not None
                raise self._broken
            position += 1
            self.read = position
            yield self._events[position - 1 : position]

"""The newest events of the log, kept in memory for followers and waiters."""

import asyncio
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from uuid import UUID

from application.log.envelope import RecordedEvent

RECENT_EVENTS_MAX = 5_000
NEAR_EVENTS_MAX = 200


class RecentEvents:
    """Ring buffer of the last events, in order of position and without gaps. Wakes waiters."""

    def __init__(self) -> None:
        self._events: deque[RecordedEvent] = deque(maxlen=RECENT_EVENTS_MAX)
        self._waiters: dict[UUID | None, dict[asyncio.Future[None], frozenset[str]]] = {}

    @property
    def first_position(self) -> int | None:
        """Return the first position held, or None if no event is held."""
        return self._events[0].envelope.position if self._events else None

    @property
    def newest(self) -> bytes | None:
        """Return the chain hash of the last event, or None if no event is held."""
        return self._events[-1].envelope.chain_hash if self._events else None

    def wake_all(self) -> None:
        """Wake all waiters, so that they check again."""
        for waiters in self._waiters.values():
            for waiter in waiters:
                _wake(waiter)

    def add(self, events: Sequence[RecordedEvent]) -> None:
        """Append the next events and wake those who wait for one of them."""
        self._events.extend(events)
        if not self._waiters:
            return
        of_any_run = self._waiters.get(None, {})
        for envelope, _ in events:
            run_id = envelope.provenance.run_id
            of_run = self._waiters.get(run_id, {}) if run_id is not None else {}
            for waiters in (of_run, of_any_run):
                for waiter, types in waiters.items():
                    if not types or envelope.type in types:
                        _wake(waiter)

    def recorded_at(self, position: int) -> datetime | None:
        """Return the time when the event at a position was recorded, or None if it is not held."""
        index = position - (self.first_position or position + 1)
        if not 0 <= index < len(self._events):
            return None
        return self._events[index].envelope.recorded_at

    def after(self, position: int) -> list[RecordedEvent]:
        """Return the events after a position, or an empty list if the next one is no longer held.

        Positions have no gaps, so the index of an event follows from the first position.
        """
        first = self.first_position
        start = position + 1 - first if first is not None else -1
        if start < 0:
            return []
        if len(self._events) - start > NEAR_EVENTS_MAX:
            return list(islice(self._events, start, None))
        # Index from the end: iterating there from the start takes longer than all other work for
        # the few events of an append.
        return [self._events[index] for index in range(start, len(self._events))]

    def has(self, run_ids: Collection[UUID], after: int, types: Collection[str]) -> bool:
        """Return True if an event after `after` is held that matches the runs and types; an empty
        collection matches all."""
        for recorded in reversed(self._events):
            envelope = recorded.envelope
            if envelope.position <= after:
                return False
            is_of = not run_ids or envelope.provenance.run_id in run_ids
            if is_of and (not types or envelope.type in types):
                return True
        return False

    @contextmanager
    def waiting(
        self,
        run_ids: Collection[UUID] = (),
        types: Collection[str] = (),
        stopped: asyncio.Future[None] | None = None,
    ) -> Iterator[asyncio.Future[None]]:
        """Yield a future that is resolved by the next event that matches the runs and types (an
        empty collection matches all), or when `stopped` is done."""
        waiter = asyncio.get_running_loop().create_future()
        wanted = frozenset(types)
        awaited: frozenset[UUID | None] = frozenset(run_ids or (None,))
        for run_id in awaited:
            self._waiters.setdefault(run_id, {})[waiter] = wanted

        def wake(_: object) -> None:
            _wake(waiter)

        if stopped is not None:
            stopped.add_done_callback(wake)
        try:
            yield waiter
        finally:
            if stopped is not None:
                stopped.remove_done_callback(wake)
            for run_id in awaited:
                waiters = self._waiters[run_id]
                del waiters[waiter]
                if not waiters:
                    del self._waiters[run_id]

    @property
    def waited_for(self) -> frozenset[UUID | None]:
        """Return the runs that have waiters; None among them means any run."""
        return frozenset(self._waiters)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)

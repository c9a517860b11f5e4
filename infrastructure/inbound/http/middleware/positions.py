"""Response headers with the log, its position, the time of that position, and the log's clock.

The position is not lower than that of any earlier answer.
"""

import logging
from collections.abc import Callable, Coroutine, Iterable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from application.concurrency.tasks import with_timeout
from application.log.event_log import LogUnavailableError

LOG_HEADER = b"spawnlog-log"
POSITION_HEADER = b"spawnlog-position"
RECORDED_AT_HEADER = b"spawnlog-recorded-at"
CLOCK_HEADER = b"spawnlog-clock"
HEAD_SECONDS_MAX = 0.25
"""Maximum time to ask the log: a ready answer must not wait for a database that is away."""


_log = logging.getLogger("spawnlog.http")
Headers = list[tuple[bytes, bytes]]


class PositionHeaders:
    """Middleware that adds position headers to answers without them: those that neither read nor
    decided.

    Another server may have answered with a higher position, so the log is asked for its head. If it
    does not answer in time, a 503 answer gets the highest position that this process knows. Other
    answers get none, since a position that is too low would break the guarantee.

    The time of a position is left out if it is not known in time. No answer waits for the clock.

    Args:
        log: Id of the log.
        head: Reads the head from the log.
        tail: Returns the position that this process has followed.
        known: Returns the time of a position if it is cached.
        recorded_at: Reads the time of a position from the log.
        now: The log's clock, to which those times belong.
    """

    def __init__(
        self,
        log: str,
        head: Callable[[], Coroutine[Any, Any, int]],
        tail: Callable[[], int],
        *,
        known: Callable[[int], datetime | None] = lambda _: None,
        recorded_at: Callable[[int], Coroutine[Any, Any, datetime | None]] | None = None,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self._log = log.encode()
        self._head = head
        self._tail = tail
        self._known_instant = known
        self._recorded_at = recorded_at
        self._now = now
        self._known = 0

    async def with_position(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> Headers:
        """Return the headers of an answer with the missing ones added. Names are in lower case."""
        marked = list(headers)
        given = dict(marked)
        if LOG_HEADER not in given:
            marked.append((LOG_HEADER, self._log))
        if self._now is not None:
            marked.append((CLOCK_HEADER, _encoded(self._now())))
        if POSITION_HEADER in given:
            position = int(given[POSITION_HEADER])
            self._known = max(self._known, position)
        elif await self._refresh_position() or status == HTTPStatus.SERVICE_UNAVAILABLE:
            position = self._known
            marked.append((POSITION_HEADER, str(position).encode()))
        else:
            return marked
        instant = await self._instant_of(position)
        if instant is not None:
            marked.append((RECORDED_AT_HEADER, _encoded(instant)))
        return marked

    async def _instant_of(self, position: int) -> datetime | None:
        instant = self._known_instant(position)
        if instant is not None or self._recorded_at is None or position <= 0:
            return instant
        try:
            return await with_timeout(self._recorded_at(position), HEAD_SECONDS_MAX)
        except (LogUnavailableError, TimeoutError):
            return None
        except Exception as error:
            # As below.
            _log.error("cannot read from the log when a position was recorded", exc_info=error)
            return None

    async def _refresh_position(self) -> bool:
        self._known = max(self._known, self._tail())
        try:
            head = await with_timeout(self._head(), HEAD_SECONDS_MAX)
        except (LogUnavailableError, TimeoutError):
            return False
        except Exception as error:
            # A ready answer is not lost because its position is unknown.
            _log.error("cannot read the head of the log", exc_info=error)
            return False
        self._known = max(self._known, head)
        return True


def _encoded(instant: datetime) -> bytes:
    text = instant.astimezone(UTC).isoformat(timespec="microseconds")
    return text.replace("+00:00", "Z").encode()

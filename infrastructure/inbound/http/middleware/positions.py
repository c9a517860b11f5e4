"""Which log an answer is of, and how far that goes: not behind anything that was told before."""

import logging
from collections.abc import Callable, Coroutine, Iterable
from http import HTTPStatus
from typing import Any

from application.concurrency.tasks import with_timeout
from application.log.event_log import LogUnavailable

LOG_HEADER = b"spawnlog-log"
POSITION_HEADER = b"spawnlog-position"
HEAD_SECONDS_MAX = 0.25
"""How long the log is asked: an answer that is ready must not wait for a database that is away."""


_log = logging.getLogger("spawnlog.http")
Headers = list[tuple[bytes, bytes]]


class PositionHeaders:
    """Marks what does not say by itself how far it goes, because it neither read nor decided.

    `head` asks the log, `tail` is what this process has followed of it. Another server may have
    told more than was seen here, so the log is asked. While it says nothing, an answer that the
    service is not ready names the highest position that this process knows of; any other would
    promise too much and names none.
    """

    def __init__(
        self, log: str, head: Callable[[], Coroutine[Any, Any, int]], tail: Callable[[], int]
    ) -> None:
        self._log = log.encode()
        self._head = head
        self._tail = tail
        self._known = 0

    async def with_position(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> Headers:
        """The headers of an answer with what they lack. Their names are in lower case."""
        marked = list(headers)
        given = dict(marked)
        if LOG_HEADER not in given:
            marked.append((LOG_HEADER, self._log))
        if POSITION_HEADER in given:
            self._known = max(self._known, int(given[POSITION_HEADER]))
        elif await self._refresh_position() or status == HTTPStatus.SERVICE_UNAVAILABLE:
            marked.append((POSITION_HEADER, str(self._known).encode()))
        return marked

    async def _refresh_position(self) -> bool:
        self._known = max(self._known, self._tail())
        try:
            head = await with_timeout(self._head(), HEAD_SECONDS_MAX)
        except (LogUnavailable, TimeoutError):
            return False
        except Exception as error:
            # An answer that is ready is not lost for want of its mark.
            _log.error("the log could not be asked how far it goes", exc_info=error)
            return False
        self._known = max(self._known, head)
        return True

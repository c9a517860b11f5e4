"""Which log an answer is of, and how far that goes: not behind anything that was told before."""

import logging
from collections.abc import Callable, Coroutine, Iterable
from http import HTTPStatus
from typing import Any

from application.ports.event_log import LogUnavailable
from application.timely import timely

LOG = b"spawnlog-log"
POSITION = b"spawnlog-position"
HEAD_SECONDS_MAX = 0.25
"""How long the log is asked: an answer that is ready must not wait for a database that is away."""

_log = logging.getLogger("spawnlog.http")

Headers = list[tuple[bytes, bytes]]


class Marks:
    """Marks what does not say by itself how far it goes, because it neither read nor decided.

    `head` asks the log, `seen` is what this process has followed of it. Another server may have
    told more than was seen here, so the log is asked. While it says nothing, an answer that the
    service is not ready names the highest position that this process knows of; any other would
    promise too much and names none.
    """

    def __init__(
        self, log: str, head: Callable[[], Coroutine[Any, Any, int]], seen: Callable[[], int]
    ) -> None:
        self._log = log.encode()
        self._head = head
        self._seen = seen
        self._known = 0

    async def added_to(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> Headers:
        """The headers of an answer with what they lack. Their names are in lower case."""
        marked = list(headers)
        given = dict(marked)
        if LOG not in given:
            marked.append((LOG, self._log))
        if POSITION in given:
            self._known = max(self._known, int(given[POSITION]))
        elif await self._has_asked() or status == HTTPStatus.SERVICE_UNAVAILABLE:
            marked.append((POSITION, str(self._known).encode()))
        return marked

    async def _has_asked(self) -> bool:
        self._known = max(self._known, self._seen())
        try:
            head = await timely(self._head(), HEAD_SECONDS_MAX)
        except (LogUnavailable, TimeoutError):
            return False
        except Exception as error:
            # An answer that is ready is not lost for want of its mark.
            _log.error("the log could not be asked how far it goes", exc_info=error)
            return False
        self._known = max(self._known, head)
        return True

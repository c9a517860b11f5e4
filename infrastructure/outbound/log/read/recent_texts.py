"""Cache of the texts that this process has just recorded. For `KEPT_SECONDS` a text is served from
memory, even if it was erased in the meantime."""

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple
from uuid import UUID

from application.log.event_log import Content

KEPT_SECONDS = 0.5
KEPT_BYTES_MAX = 4 * 1024 * 1024


class _Kept(NamedTuple):
    text: str
    size_bytes: int
    until: float


class RecentTexts:
    """Recent texts by content id. `now` is a monotonic clock in seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._kept: dict[UUID, _Kept] = {}
        self._size_bytes = 0

    def take(self, contents: Iterable[Content]) -> None:
        """Cache committed texts and evict the expired ones."""
        now = self._now()
        for content in contents:
            size_bytes = content.ref.bytes
            self._kept[content.ref.id] = _Kept(content.text, size_bytes, now + KEPT_SECONDS)
            self._size_bytes += size_bytes
        # A dict keeps the order of insertion.
        while self._kept:
            first = next(iter(self._kept))
            if self._size_bytes <= KEPT_BYTES_MAX and self._kept[first].until > now:
                return
            self._size_bytes -= self._kept.pop(first).size_bytes

    def known(self, content_ids: Iterable[UUID]) -> dict[UUID, str]:
        """Return the cached texts among these contents."""
        now = self._now()
        found = {
            content_id: self._kept[content_id]
            for content_id in content_ids
            if content_id in self._kept
        }
        return {content_id: kept.text for content_id, kept in found.items() if kept.until > now}

"""The texts that this process has just recorded: who asks for one within a moment is told from
memory. One that is erased meanwhile is told for that moment still."""

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
    """Texts by the ids of their contents. `now` tells seconds that never go back."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._kept: dict[UUID, _Kept] = {}
        self._size_bytes = 0

    def take(self, contents: Iterable[Content]) -> None:
        """Keep texts that were committed, and forget those of earlier moments."""
        now = self._now()
        for content in contents:
            size_bytes = content.ref.bytes
            self._kept[content.ref.id] = _Kept(content.text, size_bytes, now + KEPT_SECONDS)
            self._size_bytes += size_bytes
        # A dict is in the order in which texts came.
        while self._kept:
            first = next(iter(self._kept))
            if self._size_bytes <= KEPT_BYTES_MAX and self._kept[first].until > now:
                return
            self._size_bytes -= self._kept.pop(first).size_bytes

    def known(self, content_ids: Iterable[UUID]) -> dict[UUID, str]:
        """Return those of these texts that need not be asked for."""
        now = self._now()
        found = {one: self._kept[one] for one in content_ids if one in self._kept}
        return {one: kept.text for one, kept in found.items() if kept.until > now}

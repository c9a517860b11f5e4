"""Making content references: a text, its id and its keyed hash, ready for one append."""

import hashlib
import hmac
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol
from uuid import UUID

from application.log.event_log import Content
from domain.values.record import ContentRef


def keyed_hash(key: bytes, data: bytes) -> str:
    """HMAC-SHA256 in hexadecimal."""
    return hmac.new(key, data, hashlib.sha256).hexdigest()


class TextStore:
    """Collects the texts of one append. `new_id` mints the content ids."""

    def __init__(self, session_id: UUID, key: bytes, new_id: Callable[[], UUID]) -> None:
        self._session_id = session_id
        self._key = key
        self._new_id = new_id
        self._kept: list[Content] = []

    @property
    def kept(self) -> tuple[Content, ...]:
        """What was collected so far, in order."""
        return tuple(self._kept)

    def store(self, kind: str, text: str) -> ContentRef:
        """Keep a text and refer to it."""
        data = text.encode()
        ref = ContentRef(id=self._new_id(), bytes=len(data), hmac=keyed_hash(self._key, data))
        self._kept.append(Content(ref, self._session_id, kind, text))
        return ref

    def hash(self, data: bytes) -> str:
        """The keyed hash of something that is not kept by itself."""
        return keyed_hash(self._key, data)

    def empty_copy(self) -> "TextStore":
        """An empty keeper of the same session, for a decision that may be made more than once."""
        return TextStore(self._session_id, self._key, self._new_id)


# Free texts beside the log.


class Contents(Protocol):
    """Reads what appends have kept."""

    async def key(self, session_id: UUID) -> bytes | None:
        """The session's key; None when it was destroyed."""
        ...

    async def text(self, ref: ContentRef) -> str | None:
        """The text of a reference; None when it was erased."""
        ...

    async def texts(self, refs: Iterable[ContentRef]) -> Mapping[UUID, str]:
        """Several texts by content id; erased ones are absent."""
        ...

    async def kept_bytes(self, session_id: UUID, kind: str) -> int:
        """How many bytes the texts of this kind have that are kept of a session."""
        ...

    async def previews(self, refs: Iterable[ContentRef]) -> Mapping[UUID, str]:
        """The first 200 characters of several texts."""
        ...

"""Free texts beside the log."""

from collections.abc import Iterable, Mapping
from typing import Protocol
from uuid import UUID

from domain.values.record import ContentRef


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

"""Reads the texts beside the log."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from psycopg_pool import AsyncConnectionPool

from domain.content import ContentRef
from infrastructure.outbound.log.connections import Connection, borrowed


class PostgresContents:
    """Implements `Contents`."""

    def __init__(self, pool: AsyncConnectionPool[Connection]) -> None:
        self._pool = pool

    async def key(self, session_id: UUID) -> bytes | None:
        """The session's key; None when it was destroyed."""
        async with borrowed(self._pool) as connection:
            row = await (
                await connection.execute(
                    "SELECT key FROM content_keys WHERE session_id = %s", [session_id]
                )
            ).fetchone()
        return bytes(row[0]) if row else None

    async def text(self, ref: ContentRef) -> str | None:
        """The text of a reference; None when it was erased."""
        return (await self.texts([ref])).get(ref.id)

    async def texts(self, refs: Iterable[ContentRef]) -> Mapping[UUID, str]:
        """Several texts by content id."""
        return await self._read("body", refs)

    async def previews(self, refs: Iterable[ContentRef]) -> Mapping[UUID, str]:
        """The first 200 characters of several texts."""
        return await self._read("preview", refs)

    async def _read(self, column: str, refs: Iterable[ContentRef]) -> Mapping[UUID, str]:
        ids = list({ref.id for ref in refs})
        if not ids:
            return {}
        async with borrowed(self._pool) as connection:
            cursor = await connection.execute(
                f"SELECT content_id, {column} FROM contents WHERE content_id = ANY(%s)", [ids]
            )
            return {row[0]: row[1] for row in await cursor.fetchall()}

"""Reads of the texts beside the log."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from uuid import UUID

from psycopg_pool import AsyncConnectionPool

from domain.values.record import ContentRef
from infrastructure.outbound.log.read.coalesced_reads import CoalescedReads
from infrastructure.outbound.log.read.recent_texts import RecentTexts
from infrastructure.outbound.log.schema.connections import LogConnection, borrow_connection

PREVIEW_CHARS = 200
PREVIEW = f"left(body, {PREVIEW_CHARS})"
"""SQL expression: the beginning of a text."""

END_CHARS = 2_000
END = f"right(rtrim(body, E' \\n\\r\\t'), {END_CHARS})"
"""SQL expression: the end of a text, without trailing blanks."""

BODIES_MAX = 16
"""Number of texts in one query: a small text must not wait for many large ones."""


_STORED_BYTES = (
    "SELECT COALESCE(sum(bytes), 0)::bigint FROM contents WHERE session_id = %s AND kind = %s"
)


class PostgresContents:
    """Texts in PostgreSQL; implements `Contents`. Texts in `recent` need no query."""

    def __init__(
        self, pool: AsyncConnectionPool[LogConnection], recent: RecentTexts | None = None
    ) -> None:
        self._pool = pool
        self._recent = recent or RecentTexts()
        self._keys = CoalescedReads(pool, _keys)
        self._bodies = CoalescedReads(pool, partial(_column, "body"), keys_max=BODIES_MAX)
        self._previews = CoalescedReads(pool, partial(_column, PREVIEW))
        self._ends = CoalescedReads(pool, partial(_column, END))

    async def key(self, session_id: UUID) -> bytes | None:
        """Return the session's key, or None if it was destroyed."""
        return await self._keys.get(session_id)

    async def text(self, ref: ContentRef) -> str | None:
        """Return the text of a reference, or None if it was erased."""
        return await self._bodies.get(ref.id)

    async def texts(
        self, refs: Iterable[ContentRef], *, recent: bool = False
    ) -> Mapping[UUID, str]:
        """Return several texts by content id, without the erased ones."""
        content_ids = [ref.id for ref in refs]
        known = self._recent.known(content_ids) if recent else {}
        queried = await self._bodies.get_all(
            content_id for content_id in content_ids if content_id not in known
        )
        return queried | known if known else queried

    async def stored_bytes(self, session_id: UUID, kind: str) -> int:
        """Return the total size in bytes of a session's stored texts of this kind."""
        async with borrow_connection(self._pool) as connection:
            cursor = await connection.execute(_STORED_BYTES, [session_id, kind])
            row = await cursor.fetchone()
        assert row is not None
        return int(row[0])

    async def previews(self, refs: Iterable[ContentRef]) -> Mapping[UUID, str]:
        """Return the first 200 characters of several texts."""
        return await self._previews.get_all(ref.id for ref in refs)

    async def ends(self, refs: Iterable[ContentRef]) -> Mapping[UUID, str]:
        """Return the last 2,000 characters of several texts, without trailing blanks."""
        return await self._ends.get_all(ref.id for ref in refs)


async def _keys(connection: LogConnection, session_ids: Sequence[UUID]) -> Mapping[UUID, bytes]:
    cursor = await connection.execute(
        "SELECT session_id, key FROM content_keys WHERE session_id = ANY(%s)", [session_ids]
    )
    return {row[0]: bytes(row[1]) for row in await cursor.fetchall()}


async def _column(
    column: str, connection: LogConnection, content_ids: Sequence[UUID]
) -> Mapping[UUID, str]:
    cursor = await connection.execute(
        f"SELECT content_id, {column} FROM contents WHERE content_id = ANY(%s)",
        [content_ids],
        prepare=True,
    )
    return {row[0]: row[1] for row in await cursor.fetchall()}

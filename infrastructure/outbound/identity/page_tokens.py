"""Sign-in codes and tokens of the page, stored as digests in the database.

All servers of a log share them, and a stolen table does not allow anyone to sign in.
"""

import hashlib
import secrets

from psycopg_pool import AsyncConnectionPool

from application.ports.page_tokens import CODE_SECONDS, TOKEN_SECONDS
from infrastructure.outbound.log.schema.connections import LogConnection, borrow_connection

PAGE_PREFIX = "slp_"
SECRET_BYTES = 32
OF_ONE_ASKER_MAX = 1_000
"""Maximum codes and tokens per asker; the first to expire are dropped."""


def digest_of(token: str) -> bytes:
    """Return the SHA-256 of a token. Tokens are long and random, so there is no salt."""
    return hashlib.sha256(token.encode()).digest()


_FORGET = (
    "DELETE FROM page_tokens WHERE expires_at <= now() OR digest IN (SELECT digest FROM page_tokens"
    " WHERE asker = %s ORDER BY expires_at DESC OFFSET %s)"
)
_STORE_CODE = (
    "INSERT INTO page_tokens (digest, kind, asker, expires_at)"
    " VALUES (%s, 'code', %s, now() + make_interval(secs => %s))"
)
_TRADE = (
    "WITH used AS (DELETE FROM page_tokens WHERE digest = %s AND kind = 'code'"
    " AND expires_at > now() RETURNING asker)"
    " INSERT INTO page_tokens (digest, kind, asker, expires_at)"
    " SELECT %s, 'token', asker, now() + make_interval(secs => %s) FROM used"
)
_ASKER = "SELECT asker FROM page_tokens WHERE digest = %s AND kind = 'token' AND expires_at > now()"
_REVOKE = "DELETE FROM page_tokens WHERE digest = %s AND kind = 'token'"


class PostgresPageTokens:
    """Table of codes and tokens. An asker is the digest of the token that requested the code."""

    def __init__(self, pool: AsyncConnectionPool[LogConnection]) -> None:
        self._pool = pool

    async def make_code(self, asker: bytes) -> str:
        """Create and return a code."""
        code = secrets.token_urlsafe(SECRET_BYTES)
        async with borrow_connection(self._pool) as connection:
            await connection.execute(_FORGET, [asker, OF_ONE_ASKER_MAX - 1])
            await connection.execute(_STORE_CODE, [digest_of(code), asker, CODE_SECONDS])
        return code

    async def trade_code(self, code: str) -> str | None:
        """Exchange a code for a token; None if the code is unknown or expired.

        A single statement consumes the code, so only one of two concurrent calls gets a token.
        """
        token = PAGE_PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        values = [digest_of(code), digest_of(token), TOKEN_SECONDS]
        async with borrow_connection(self._pool) as connection:
            traded = await connection.execute(_TRADE, values)
        return token if traded.rowcount == 1 else None

    async def asker_of(self, token: str) -> bytes | None:
        """Return the asker of a token; None if the token is unknown or expired."""
        async with borrow_connection(self._pool) as connection:
            row = await (await connection.execute(_ASKER, [digest_of(token)])).fetchone()
        return bytes(row[0]) if row is not None else None

    async def revoke(self, token: str) -> bool:
        """Delete a token. Return True if it existed."""
        async with borrow_connection(self._pool) as connection:
            return (await connection.execute(_REVOKE, [digest_of(token)])).rowcount == 1

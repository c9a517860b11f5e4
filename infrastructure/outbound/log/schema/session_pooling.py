"""Check for a connection pooler that assigns each transaction another session.

The log needs sessions of its own: their settings, locks, prepared statements and notifications
outlive a transaction. pgbouncer provides them with `pool_mode = session`.
"""

from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.rows import scalar_row

from infrastructure.contract.errors import UserError

# The order in which two open connections ask for their session. Changing the order exposes a pooler
# that assigns its server connections round-robin.
_TURNS = (0, 1, 1, 0, 0, 1, 0, 1)


def require_own_session(
    connection: psycopg.Connection[Any], connect: Callable[[], psycopg.Connection[Any]]
) -> None:
    """Refuse a pooler in transaction or statement mode.

    A pooler reports a process id of its own at the start of a connection. Without a pooler, this
    check takes one round trip.

    Args:
        connection: An open connection, outside any transaction.
        connect: Opens another connection to the same database.

    Raises:
        UserError: A statement may reach the session of another connection.
    """
    if _backend_pid(connection) == connection.info.backend_pid:
        return
    with connect() as other:
        pids: tuple[set[int], set[int]] = (set(), set())
        for turn in _TURNS:
            pids[turn].add(_backend_pid((connection, other)[turn]))
    if len(pids[0]) > 1 or len(pids[1]) > 1 or pids[0] == pids[1]:
        raise UserError(
            "the connection pooler in front of the database shares a session between connections;"
            " set it to session pooling (pgbouncer: pool_mode = session), or give the database's"
            " own address"
        )


def _backend_pid(connection: psycopg.Connection[Any]) -> int:
    with connection.cursor(row_factory=scalar_row) as cursor:
        pid: int | None = cursor.execute("SELECT pg_backend_pid()", prepare=False).fetchone()
    assert pid is not None
    return pid

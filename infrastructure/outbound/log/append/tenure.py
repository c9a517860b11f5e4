"""The tenure of the log: a session holds the append lock from batch to batch, until another asks.

The lock is the session's, and the session is the one that stores: whoever can store holds the lock.
Who waits for it says so on the log's channel, and the holder ends its batch and gives it up. A
holder that is never told, because its listener is away, gives it up once in `TENURE_SECONDS_MAX`,
and one that has nothing to do soon gives it up by itself. The database ends the session of one that
is frozen; if it is still sending an answer then, whoever waited for the lock in vain ends it.
"""

import contextlib
import math
import time
from datetime import datetime
from typing import Any

from psycopg import errors

from infrastructure.outbound.log.append.ledger import Head
from infrastructure.outbound.log.schema.append_lock import LOCK_CLASS, LOCK_KEY
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.log.schema.followers import FOLLOWERS, GIVE_UP
from infrastructure.outbound.log.schema.format import require_known_format
from infrastructure.outbound.log.schema.projection_versions import (
    NOTED_VERSIONS,
    require_known_rows,
)

TENURE_SECONDS_MAX = 1.0
IDLE_SECONDS_MAX = 0.5
FROZEN_MILLISECONDS_MAX = 5_000
"""After so long without a word the database ends the session of a holder. It is the limit on an
idle transaction too, and longer than `IDLE_SECONDS_MAX`, so that it ends nobody who is alive."""

ASKED_SECONDS = 0.1
"""For so long after it was asked a holder gives the lock up behind each batch: who asked begins to
wait a round trip later, and the holder may have taken the lock again by then."""

OTHER_FOLLOWERS_MIN = 2
"""So many listen when another process does: this one is among them."""


_WAIT = f"SELECT pg_advisory_lock({LOCK_KEY})"
_UNLOCK = f"SELECT pg_advisory_unlock({LOCK_KEY})"
_NO_LIMIT = "SET idle_session_timeout = 0"
_END_FROZEN = (
    "SELECT pg_terminate_backend(pid) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)"
    " WHERE locktype = 'advisory' AND granted AND objsubid = 2"
    " AND (SELECT oid FROM pg_database WHERE datname = current_database()) = l.database"
    f" AND (classid, objid) = ({LOCK_CLASS}, hashtext(current_schema())::oid)"
    " AND wait_event = 'ClientWrite'"
    " AND query_start < clock_timestamp() - %b * interval '1 millisecond'"
)

# Statements of their own: each sees what is there when it starts, and that is behind the lock.
_HEAD = (
    "SELECT position, recorded_at, chain_hash,"
    " (SELECT coalesce(max(version), 0) FROM events WHERE stream = 'log:config'),"
    " 'runs'::regclass::oid::bigint, 'sessions'::regclass::oid::bigint,"
    f" format, {NOTED_VERSIONS}, clock_timestamp(), {FOLLOWERS} FROM log_head"
)
_HEAD_COLUMNS = len(Head._fields)


class Tenure:
    """The append lock of one session."""

    def __init__(self, channel: str) -> None:
        # Who cannot have it asks for it, in the same round trip.
        self._try = (
            f"SELECT CASE WHEN pg_try_advisory_lock({LOCK_KEY}) THEN true"
            f" ELSE pg_notify('{channel}', '{GIVE_UP}') IS NULL END"
        )
        self._since: float | None = None
        self._is_asked = False
        self._asked_at = -math.inf
        self.has_followers = True

    @property
    def is_held(self) -> bool:
        """Return whether the session has the lock."""
        return self._since is not None

    @property
    def is_over(self) -> bool:
        """Return whether the lock is held, and somebody else waits for it, or is about to."""
        is_recent = time.monotonic() - self._asked_at < ASKED_SECONDS
        return self.is_held and (self._is_asked or is_recent)

    def ask(self) -> None:
        """Note that somebody else waits for the lock."""
        self._is_asked = True
        self._asked_at = time.monotonic()

    async def take(self, connection: LogConnection) -> tuple[Head, datetime] | None:
        """Take the lock, or go on holding it.

        Returns:
            The head and the time of the database, if the lock was taken anew; None if it was held
            all the time, and nobody else can have written.

        Raises:
            UnknownFormat: Another release has changed the log's format or rows.
        """
        if self._since is not None and time.monotonic() - self._since < TENURE_SECONDS_MAX:
            return None
        first = f"{_UNLOCK}; {self._try}" if self._since is not None else self._try
        self.forget()
        limit = f"SET idle_session_timeout = {FROZEN_MILLISECONDS_MAX}"
        is_held, head = await _ask(connection, f"{first}; {limit}; {_HEAD}")
        # This answer waited for nothing: the clock is as old as its question, at most.
        now = head[_HEAD_COLUMNS + 2]
        if not is_held:
            try:
                _, head = await _ask(connection, f"{_WAIT}; {_HEAD}")
            except errors.LockNotAvailable:
                if not await _has_ended_frozen(connection):
                    raise
                _, head = await _ask(connection, f"{_WAIT}; {_HEAD}")
        self._since = time.monotonic()
        require_known_format(head[_HEAD_COLUMNS])
        require_known_rows(head[_HEAD_COLUMNS + 1])
        self.has_followers = head[_HEAD_COLUMNS + 3] >= OTHER_FOLLOWERS_MIN
        return Head(*head[:_HEAD_COLUMNS]), now

    async def give_up(self, connection: LogConnection) -> None:
        """Let another have the lock."""
        self.forget()
        await connection.execute(f"{_UNLOCK}; {_NO_LIMIT}", prepare=False)

    def forget(self) -> None:
        """Note that the session is gone, or has the lock no longer."""
        self._since = None
        self._is_asked = False


async def _has_ended_frozen(connection: LogConnection) -> bool:
    """Return whether a holder that reads no answer was there, and was ended."""
    with contextlib.suppress(errors.InsufficientPrivilege):
        ended = await connection.execute(_END_FROZEN, [FROZEN_MILLISECONDS_MAX])
        return await ended.fetchone() is not None
    return False


async def _ask(connection: LogConnection, statements: str) -> tuple[bool, tuple[Any, ...]]:
    """Return what was said of the lock, and the row of the head, which come last."""
    cursor = await connection.execute(statements, prepare=False)
    rows: list[tuple[Any, ...]] = []
    while True:
        if cursor.description is not None:
            rows += await cursor.fetchall()
        if not cursor.nextset():
            return rows[-2][0] is not False, rows[-1]

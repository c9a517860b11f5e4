"""Tenure of the append lock: a session holds the lock across batches until another process asks for
it.

The lock belongs to the database session that also stores the events, so a session that can store
holds the lock. A process that waits for the lock says so on the log's notification channel; the
holder finishes its batch and releases the lock. A holder whose listener is disconnected releases it
once every `TENURE_SECONDS_MAX`, and an idle holder releases it after `IDLE_SECONDS_MAX`. If a
holder is frozen, the database ends its session. If that session is stuck sending an answer, a
process that waited for the lock in vain terminates it.
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
"""The database ends the session of a holder that is silent for this long. It also limits an idle
transaction. It exceeds `IDLE_SECONDS_MAX`, so no live holder is ended."""

ASKED_SECONDS = 0.1
"""For this long after a request, a holder releases the lock after every batch: the requester starts
waiting one round trip later, and the holder may have retaken the lock by then."""

OTHER_FOLLOWERS_MIN = 2
"""Number of listeners, this process included, from which on another process listens."""


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

# Separate statements: each has a snapshot of its own start, which is after the lock was acquired.
_HEAD = (
    "SELECT position, recorded_at, chain_hash,"
    " (SELECT coalesce(max(version), 0) FROM events WHERE stream = 'log:config'),"
    " 'runs'::regclass::oid::bigint, 'sessions'::regclass::oid::bigint,"
    f" format, {NOTED_VERSIONS}, clock_timestamp(), {FOLLOWERS} FROM log_head"
)
_HEAD_COLUMNS = len(Head._fields)


class Tenure:
    """Append lock of one database session."""

    def __init__(self, channel: str) -> None:
        # If the lock is taken, request it in the same round trip.
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
        """Return True if the session holds the lock."""
        return self._since is not None

    @property
    def is_over(self) -> bool:
        """Return True if the lock is held and another process waits for it, or is about to."""
        is_recent = time.monotonic() - self._asked_at < ASKED_SECONDS
        return self.is_held and (self._is_asked or is_recent)

    def ask(self) -> None:
        """Note that another process waits for the lock."""
        self._is_asked = True
        self._asked_at = time.monotonic()

    async def take(self, connection: LogConnection) -> tuple[Head, datetime] | None:
        """Take the lock, or keep it if this session still holds it.

        Returns:
            The head and the time of the database if the lock was newly acquired; None if it was
            held throughout, so that no other process can have written.

        Raises:
            UnknownFormatError: Another release has changed the log's format or rows.
            LockNotAvailable: The lock timeout passed, and no frozen holder was found to terminate.
        """
        if self._since is not None and time.monotonic() - self._since < TENURE_SECONDS_MAX:
            return None
        first = f"{_UNLOCK}; {self._try}" if self._since is not None else self._try
        self.forget()
        limit = f"SET idle_session_timeout = {FROZEN_MILLISECONDS_MAX}"
        is_held, head = await _ask(connection, f"{first}; {limit}; {_HEAD}")
        # This answer did not wait for the lock, so the time is at most one round trip old.
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
        """Release the lock."""
        self.forget()
        await connection.execute(f"{_UNLOCK}; {_NO_LIMIT}", prepare=False)

    def forget(self) -> None:
        """Note that the session is gone or no longer holds the lock."""
        self._since = None
        self._is_asked = False


async def _has_ended_frozen(connection: LogConnection) -> bool:
    """Return True if a holder that no longer reads answers was found and terminated."""
    with contextlib.suppress(errors.InsufficientPrivilege):
        ended = await connection.execute(_END_FROZEN, [FROZEN_MILLISECONDS_MAX])
        return await ended.fetchone() is not None
    return False


async def _ask(connection: LogConnection, statements: str) -> tuple[bool, tuple[Any, ...]]:
    """Return the results of the last two statements: whether the lock is held, and the row of the
    head."""
    cursor = await connection.execute(statements, prepare=False)
    rows: list[tuple[Any, ...]] = []
    while True:
        if cursor.description is not None:
            rows += await cursor.fetchall()
        if not cursor.nextset():
            return rows[-2][0] is not False, rows[-1]

"""Notifications between the processes of one log: a channel, and an advisory lock that all
listeners share, so that a writer knows whether another process listens."""

import hashlib

FOLLOWERS_LOCK_CLASS = 0x53504C46

GIVE_UP = "give up"
"""Notification of a writer that waits for the append lock. Other notifications are positions."""


def channel_of(schema: str) -> str:
    """Return the notification channel of a log in `schema`: a short identifier without special
    characters, whatever the schema's name."""
    digest = hashlib.sha256(schema.encode()).hexdigest()
    return f"spawnlog_{digest[:16]}"


def listen_statement(channel: str) -> str:
    """Return the statement that makes a session listen until it ends. Execute it outside any
    transaction.

    The lock is only ever taken in shared mode, so this never blocks.
    """
    key = f"{FOLLOWERS_LOCK_CLASS}, hashtext(current_schema())"
    return f'LISTEN "{channel}"; SELECT pg_advisory_lock_shared({key})'


# `objid` is unsigned.
FOLLOWERS = (
    "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    f" AND classid = {FOLLOWERS_LOCK_CLASS}"
    " AND objid::bigint = hashtext(current_schema())::bigint & 4294967295)"
)
"""SQL expression: number of listening sessions, including this process's own."""

"""How processes that write or follow one log hear of each other: a channel, and a lock that all who
listen share, so that a writer knows whether anybody would hear it."""

import hashlib

FOLLOWERS_LOCK_CLASS = 0x53504C46

GIVE_UP = "give up"
"""What a writer says on the channel when it waits for the append lock. Others say positions."""


def channel_of(schema: str) -> str:
    """Return the name of the notifications of a log in `schema`, short and plain whatever that one
    is."""
    digest = hashlib.sha256(schema.encode()).hexdigest()
    return f"spawnlog_{digest[:16]}"


def listen_statement(channel: str) -> str:
    """Return what a session executes, outside any transaction, to listen for as long as it lasts.

    Nobody takes the lock in another mode, so this waits for nothing.
    """
    key = f"{FOLLOWERS_LOCK_CLASS}, hashtext(current_schema())"
    return f'LISTEN "{channel}"; SELECT pg_advisory_lock_shared({key})'


# `objid` has no sign.
FOLLOWERS = (
    "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    f" AND classid = {FOLLOWERS_LOCK_CLASS}"
    " AND objid::bigint = hashtext(current_schema())::bigint & 4294967295)"
)
"""An expression of SQL: how many sessions listen, this process's own among them."""

"""Append lock of a log: an advisory lock held to append, to swap the tables or to migrate."""

LOCK_CLASS = 0x53504C47
"""First half of the advisory lock's key. The second half is the schema, so that two logs in one
database do not block each other."""

LOCK_KEY = f"{LOCK_CLASS}, hashtext(current_schema())"

LOCK = f"SELECT pg_advisory_xact_lock({LOCK_KEY})"
"""Takes the lock for a transaction. A writer releases it when asked to, and otherwise within a
second. The next writer then reads the log's head, format, rows and tables again."""

"""The append lock of a log: whoever appends, exchanges its tables or migrates it holds this."""

LOCK_CLASS = 0x53504C47
"""First half of the advisory lock's key; the second is the schema, so that two logs in one
database do not wait for each other."""

LOCK_KEY = f"{LOCK_CLASS}, hashtext(current_schema())"

LOCK = f"SELECT pg_advisory_xact_lock({LOCK_KEY})"
"""Takes the lock for a transaction. A writer gives it up when it is asked to, and else within a
second. What the holder knows of the log's head, format, rows and tables it reads anew then."""

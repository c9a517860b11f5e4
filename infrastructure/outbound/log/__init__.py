"""The log in PostgreSQL: one writer per process, readers by position, a tail."""

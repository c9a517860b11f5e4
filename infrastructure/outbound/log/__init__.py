"""The log in PostgreSQL: one writer a process, readers by position, a tail."""

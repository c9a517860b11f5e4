"""The connection of one who only looks: it writes nothing and takes no lock that others feel."""

from typing import Any

import psycopg
from psycopg.rows import TupleRow

from infrastructure.outbound.log.codec.binary import BinaryColumn, ColumnDumper
from infrastructure.outbound.log.schema.connections import CONNECT_TIMEOUT_SECONDS, LOCK_TIMEOUT_MS

ReadConnection = psycopg.Connection[TupleRow]

PAGE_TIMEOUT_MS = 120_000
"""How long the statement of one page may take; a sweep over a whole table has no limit."""


def open_read_connection(conninfo: str) -> ReadConnection:
    """A connection outside any transaction that can only read."""
    connection = psycopg.connect(
        conninfo,
        autocommit=True,
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        application_name="spawnlog verify",
        client_encoding="utf8",
    )
    connection.adapters.register_dumper(BinaryColumn, ColumnDumper)
    try:
        # Every look-up is by a few keys: without these a table that was never analysed is read
        # as a whole to find them.
        connection.execute(
            f"SET lock_timeout = {LOCK_TIMEOUT_MS}; SET statement_timeout = {PAGE_TIMEOUT_MS};"
            " SET default_transaction_read_only = on; SET timezone = 'UTC'; SET jit = off;"
            " SET enable_hashjoin = off; SET enable_mergejoin = off"
        )
    except BaseException:
        connection.close()
        raise
    return connection


def one_row(connection: ReadConnection, query: str, values: Any = None) -> TupleRow:
    """The only row of a query."""
    row = connection.execute(query, values).fetchone()
    assert row is not None
    return row


def database_error_reason(error: psycopg.Error) -> str:
    """Why the database cannot be read, in a line. Drivers put addresses there, but no passwords."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"the database cannot be read: {lines[0][:500]}"

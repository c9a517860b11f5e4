"""Settings of a database session that the log fixes on every connection.

A session's settings come from the server's configuration, the database, the role, the URL and
libpq's environment (`PGOPTIONS`, `PGCLIENTENCODING`, `PGDATESTYLE`, `PGTZ`). Settings that change
how bytes, texts, numbers, instants or statements are read and written, which rows a query sees, or
whether a commit is durable have the values below instead, so that every process reads what every
other one wrote.

The operator keeps the rest: `search_path`, which names the schema of the log, `role`,
`default_transaction_read_only`, with which an operator locks a database, memory, costs and logging.
"""

from infrastructure.contract.errors import UserError

FIXED: dict[str, str] = {
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "timezone_abbreviations": "Default",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "array_nulls": "on",
    "standard_conforming_strings": "on",
    "backslash_quote": "safe_encoding",
    "transform_null_equals": "off",
    "quote_all_identifiers": "off",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    # A policy that would hide rows is an error instead.
    "row_security": "off",
    "synchronous_commit": "on",
    "exit_on_error": "off",
    "idle_session_timeout": "0",
    "transaction_timeout": "0",
    "jit": "off",
}

VERSION_MIN = 140_000
"""The oldest server version: the first one that ends an idle session which holds a lock."""

_SINCE = {"transaction_timeout": 170_000}
"""The server version that a setting came with, for settings younger than `VERSION_MIN`."""


def session_statement(server_version: int, more: str) -> str:
    """Return the statement that sets a new connection up, for a single round trip.

    Args:
        server_version: The server's version as libpq numbers it, such as 180004.
        more: Further SQL, such as limits and planning; it overrides the fixed settings.

    Raises:
        UserError: The server is older than `VERSION_MIN`.
    """
    if server_version < VERSION_MIN:
        raise UserError(
            f"the database is PostgreSQL {server_version // 10_000}; spawnlog needs PostgreSQL"
            f" {VERSION_MIN // 10_000} or newer: upgrade it, or use the embedded one"
        )
    fixed = (
        f"SET {name} = '{value}'"
        for name, value in FIXED.items()
        if server_version >= _SINCE.get(name, 0)
    )
    return "; ".join([*fixed, more])

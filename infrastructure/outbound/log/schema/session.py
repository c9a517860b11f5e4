"""Session settings that the log fixes on every connection.

A session inherits settings from the server's configuration, the database, the role, the URL and
libpq's environment (`PGOPTIONS`, `PGCLIENTENCODING`, `PGDATESTYLE`, `PGTZ`). The settings below are
fixed because they change how values and statements are read and written, which rows a query sees,
or whether a commit is durable. So every process reads exactly the values that another one wrote.

The operator keeps the others: `search_path`, which selects the log's schema, `role`,
`default_transaction_read_only`, which makes a database read-only, memory, costs and logging.
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
    # A policy that would hide rows raises an error instead.
    "row_security": "off",
    "synchronous_commit": "on",
    "exit_on_error": "off",
    "idle_session_timeout": "0",
    "transaction_timeout": "0",
    "jit": "off",
}

VERSION_MIN = 140_000
"""The oldest supported server version: the first one that ends an idle session that holds a
lock."""

_SINCE = {"transaction_timeout": 170_000}
"""The server version that introduced a setting, for settings newer than `VERSION_MIN`."""


def session_statement(server_version: int, more: str) -> str:
    """Return the statement that sets up a new connection in a single round trip.

    Args:
        server_version: The server's version in libpq's form, such as 180004.
        more: Further SQL, such as limits and planner settings; it overrides the fixed settings.

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

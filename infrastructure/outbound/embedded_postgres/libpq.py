"""Keeps libpq's environment out of connections to the embedded server.

A shell has `PG*` variables for another PostgreSQL. libpq takes from them what a URL leaves out, so
the embedded server's URL leaves nothing out. Variables that no parameter overrides are hidden from
libpq.
"""

import os
from urllib.parse import quote

from psycopg.pq import Conninfo

NOT_BY_URL = ("PGSERVICE", "PGDATESTYLE", "PGTZ", "PGGEQO")
"""Variables that libpq reads whatever the URL says: a service that it looks up even when another
one is given, and settings that it sends with the start of a session."""

# libpq takes no empty word for these, and has no compiled-in default.
_VALUES = {
    "connect_timeout": "10",
    "client_encoding": "UTF8",
    "sslmode": "disable",
    "sslcertmode": "disable",
    "min_protocol_version": "3.0",
    "max_protocol_version": "3.0",
}


def complete_url(url: str) -> str:
    """Return `url` with every parameter that libpq would else take from its environment.

    Args:
        url: A URL with a query that names user, database, host and port.
    """
    _, _, query = url.partition("?")
    named = {"user", "dbname", "service", *(one.partition("=")[0] for one in query.split("&"))}
    more = {
        option.keyword.decode(): (option.compiled or b"").decode()
        for option in Conninfo.get_defaults()
        if option.envvar is not None
    }
    return url + "".join(
        f"&{name}={quote(_VALUES.get(name, value))}"
        for name, value in more.items()
        if name not in named
    )


def hide_variables() -> None:
    """Hide the remaining variables from libpq in this process and those that it starts.

    `os.environ` keeps them: a configuration may refer to any variable of the shell.
    """
    for name in NOT_BY_URL:
        os.unsetenv(name)

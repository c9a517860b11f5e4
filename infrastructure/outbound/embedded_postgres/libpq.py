"""Keeps libpq's environment out of connections to the embedded server.

A shell has `PG*` variables for another PostgreSQL. libpq takes from them what a URL leaves out, so
the embedded server's URL leaves nothing out. Variables that no parameter overrides are hidden from
libpq.
"""

import os
import sys
from pathlib import Path
from urllib.parse import quote

from psycopg.pq import Conninfo

if sys.platform != "win32":
    import pwd

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


def complete_url(url: str, data: Path) -> str:
    """Return `url` with every parameter that libpq would else take from its environment.

    Args:
        url: A URL with a query that names user, database, host and port.
        data: The data directory. Only a server that runs as its owner is talked to: a socket
            outside the home could be somebody else's.

    Raises:
        FileNotFoundError: There is no data yet, so there is no server.
    """
    values = {**_VALUES, "requirepeer": _user_name(data.stat().st_uid)}
    _, _, query = url.partition("?")
    named = {"user", "dbname", "service", *(one.partition("=")[0] for one in query.split("&"))}
    more = {
        option.keyword.decode(): (option.compiled or b"").decode()
        for option in Conninfo.get_defaults()
        if option.envvar is not None
    }
    return url + "".join(
        f"&{name}={quote(values.get(name, value))}"
        for name, value in more.items()
        if name not in named
    )


def _user_name(uid: int) -> str:
    """Return the name by which libpq knows a user; empty, which asks for nobody, without one."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""


def hide_variables() -> None:
    """Hide the remaining variables from libpq in this process and those that it starts.

    `os.environ` keeps them: a configuration may refer to any variable of the shell.
    """
    for name in NOT_BY_URL:
        os.unsetenv(name)

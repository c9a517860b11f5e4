"""Keep the `PG*` environment out of connections to the embedded server.

A shell may have `PG*` variables for another PostgreSQL. libpq takes from them what a URL leaves
out, so the URL of the embedded server names every parameter. Variables that no parameter overrides
are hidden from libpq.
"""

import os
import sys
from pathlib import Path
from urllib.parse import quote

from psycopg.pq import Conninfo

if sys.platform != "win32":
    import pwd

NOT_BY_URL = ("PGSERVICE", "PGDATESTYLE", "PGTZ", "PGGEQO")
"""Variables that libpq reads whatever the URL says.

PGSERVICE is looked up even if another service is given; the others are settings that libpq sends at
the start of a session.
"""

# libpq accepts no empty value for these and has no compiled-in default.
_VALUES = {
    "connect_timeout": "10",
    "client_encoding": "UTF8",
    "sslmode": "disable",
    "sslcertmode": "disable",
    "min_protocol_version": "3.0",
    "max_protocol_version": "3.0",
}


def complete_url(url: str, data: Path) -> str:
    """Return `url` with every parameter that libpq would otherwise take from its environment.

    Args:
        url: URL with a query that names user, database, host and port.
        data: Data directory. The connection is refused unless the server runs as its owner, because
            another user could have created a socket outside the home.

    Raises:
        FileNotFoundError: There is no data yet, so there is no server.
    """
    values = {**_VALUES, "requirepeer": _user_name(data.stat().st_uid)}
    _, _, query = url.partition("?")
    named = {
        "user",
        "dbname",
        "service",
        *(parameter.partition("=")[0] for parameter in query.split("&")),
    }
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
    """Return the user name as libpq knows it. Without one, return "", which disables the check."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""


def hide_variables() -> None:
    """Hide the variables in `NOT_BY_URL` from libpq, in this process and its children.

    `os.environ` keeps them: a configuration may refer to any variable of the shell.
    """
    for name in NOT_BY_URL:
        os.unsetenv(name)

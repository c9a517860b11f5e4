"""PostgreSQL server with slow commits, a clock that can be set, and sudden stops."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from infrastructure.outbound.log.schema.append_lock import LOCK_CLASS
from infrastructure.outbound.log.schema.migrate import migrate
from tests.support.servers.databases import temporary_home
from tests.support.servers.embedded_servers import (
    postmaster_of,
    server_is_gone,
)
from tests.support.servers.process_table import is_alive
from tests.support.waiting import wait_for

LATE_COMMITS = 0.3
LATE_ROWS = 0.05
LATE_SECONDS_MAX = 0.02
GROWTH_SECONDS_MAX = 30.0

# Delays a commit at its end, when everything is written and nothing is visible. Rows of projections
# are delayed too, for a log that commits them separately.
_LATE = f"""
CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF random() < TG_ARGV[0]::float THEN PERFORM pg_sleep(random() * {LATE_SECONDS_MAX}); END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON commits
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late({LATE_COMMITS});
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON runs
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late({LATE_ROWS});
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON sessions
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late({LATE_ROWS});
"""

# A clock of that name in front of PostgreSQL's own: the log asks this one.
CLOCK = """
CREATE TABLE clock (ahead double precision NOT NULL);
INSERT INTO clock VALUES (0);
CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    'SELECT pg_catalog.clock_timestamp() + make_interval(secs => ahead) FROM public.clock';
ALTER DATABASE {database} SET search_path = public, pg_catalog;
"""
_LOG_BACKENDS = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name = 'spawnlog test' AND pid <> pg_backend_pid()"
)
_WRITERS = f"SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = {LOCK_CLASS}"


class StormyDatabase:
    """The server, and its faults."""

    def __init__(self, home: Path, server: EmbeddedPostgres) -> None:
        self._home = home
        self._server = server
        self.url = server.conninfo
        self._connection = psycopg.connect(self.url, autocommit=True)

    def close(self) -> None:
        """Close the connection. The database server keeps running."""
        self._connection.close()

    def ask(self, query: str, *values: Any) -> list[Any]:
        """Return the rows of a query."""
        cursor = self._connection.execute(query, values or None)
        return cursor.fetchall() if cursor.description else []

    def head(self) -> int:
        """Return the last position."""
        return int(self.ask("SELECT position FROM log_head")[0][0])

    def grow(self, events: int, alive: Callable[[], None]) -> None:
        """Wait until `events` more are recorded. `alive` raises if no writer is left."""
        wanted = self.head() + events
        deadline = time.monotonic() + GROWTH_SECONDS_MAX
        while self.head() < wanted:
            alive()
            assert time.monotonic() < deadline, "the log does not grow any more"
            threading.Event().wait(0.02)

    def end_a_backend(self, number: int) -> bool:
        """End one of the log's connections, writers first, chosen by `number`. Return True if there
        was one.
        """
        found = self.ask(_WRITERS if number % 2 else _LOG_BACKENDS) or self.ask(_LOG_BACKENDS)
        pids = sorted(row[0] for row in found)
        return bool(pids) and self.ask("SELECT pg_terminate_backend(%s)", pids[number % len(pids)])[
            0
        ] == (True,)

    def set_clock(self, ahead_seconds: float) -> None:
        """Set the database's clock ahead by this many seconds, or back if negative."""
        self.ask("UPDATE clock SET ahead = %s", ahead_seconds)

    def stop_at_once(self) -> None:
        """Restart the server, as by `pg_ctl stop -m immediate`."""
        self._connection.close()
        stopped = postmaster_of(self._home)
        os.kill(stopped, signal.SIGQUIT)
        wait_for("the server has stopped", lambda: not is_alive(stopped))
        self._server.ensure_running()
        self._connection = psycopg.connect(self.url, autocommit=True)


@contextmanager
def stormy_database() -> Iterator[StormyDatabase]:
    """Yield a running server with an empty log."""
    with temporary_home() as home:
        with closing(EmbeddedPostgres.start(home)) as server:
            migrate(server.conninfo)
            with psycopg.connect(server.conninfo, autocommit=True) as connection:
                connection.execute(_LATE)
                connection.execute(CLOCK.format(database="spawnlog").encode())
            with closing(StormyDatabase(home, server)) as database:
                yield database
        wait_for("the server has stopped", lambda: server_is_gone(home))

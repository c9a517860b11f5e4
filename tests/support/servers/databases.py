"""Databases for tests: one server for all, a fresh and migrated database for each."""

import shutil
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from infrastructure.outbound.embedded_postgres.data_directory import Home
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from infrastructure.outbound.log.schema.migrate import migrate

MAINTENANCE = "postgres"
TEMPLATE = "migrated"
AHEAD = 2
LEAVE_SECONDS_MAX = 5.0


class Databases:
    """Databases on a server of one's own, made ahead of time and dropped in the background."""

    def __init__(self, home: Path) -> None:
        self._home = Home.at(home)
        self._numbers = count(1)
        self._connection = psycopg.connect(self._url(MAINTENANCE), autocommit=True)
        # Creates and drops: starting a backend costs as much as dropping a database.
        self._maker = psycopg.connect(self._url(MAINTENANCE), autocommit=True)
        migrate(self._create(TEMPLATE, "template1"))
        self._background = ThreadPoolExecutor(1, "databases")
        self._ahead = deque(self._begin() for _ in range(AHEAD))
        self._dropped: list[Future[None]] = []

    def _url(self, name: str) -> str:
        return self._home.conninfo(name)

    def _create(self, name: str, template: str) -> str:
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        self._maker.execute(statement.format(sql.Identifier(name), sql.Identifier(template)))
        return self._url(name)

    def _begin(self) -> Future[str]:
        return self._background.submit(self._create, f"test_{next(self._numbers)}", TEMPLATE)

    def create_empty(self) -> str:
        """Create a database without tables. Return its URL."""
        return self._create(f"test_{next(self._numbers)}", "template1")

    def copy(self, url: str) -> str:
        """Copy a database without connections. Return the URL of the copy."""
        return self._create(f"test_{next(self._numbers)}", _name_in(url))

    def create(self) -> str:
        """Create a migrated database. Return its URL."""
        self._ahead.append(self._begin())
        return self._ahead.popleft().result()

    def drop(self, url: str) -> None:
        """Drop a database. Fails if a connection to it is open."""
        name = _name_in(url)
        deadline = time.monotonic() + LEAVE_SECONDS_MAX
        while left := self._connected_to(name):
            assert time.monotonic() < deadline, f"connections left open: {left}"
            time.sleep(0.005)
        self._dropped.append(self._background.submit(self._drop, name))

    def _connected_to(self, name: str) -> list[str]:
        rows = self._connection.execute(
            "SELECT application_name || ': ' || query FROM pg_stat_activity WHERE datname = %s"
            " AND backend_type = 'client backend'",
            [name],
        )
        return [row[0] for row in rows]

    def _drop(self, name: str) -> None:
        self._maker.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))

    def settle(self) -> None:
        """Wait until nothing is being made or dropped in the background."""
        for made in self._ahead:
            made.exception()
        for dropped in self._dropped:
            dropped.exception()

    def close(self) -> None:
        """Wait for creations and drops in progress; raise their errors."""
        self._background.shutdown()
        self._connection.close()
        self._maker.close()
        for dropped in self._dropped:
            dropped.result()


def _name_in(url: str) -> str:
    return str(conninfo_to_dict(url)["dbname"])


@contextmanager
def temporary_home() -> Iterator[Path]:
    """Yield a folder for a separate server, which must have stopped by the end of the block."""
    directory = Path(tempfile.mkdtemp(prefix="spawnlog-test-"))
    directory.chmod(0o755)
    try:
        yield directory / "postgres"
    finally:
        shutil.rmtree(directory)


@contextmanager
def serving_databases() -> Iterator[Databases]:
    """Yield a server in a temporary home."""
    with temporary_home() as home, closing(EmbeddedPostgres.start(home)):
        with closing(Databases(home)) as databases:
            yield databases

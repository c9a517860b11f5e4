"""Public interface of the embedded server."""

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import psycopg
from psycopg import sql

from infrastructure.outbound.embedded_postgres import binaries as programs
from infrastructure.outbound.embedded_postgres.data_directory import DATABASE, Home
from infrastructure.outbound.embedded_postgres.errors import EmbeddedPostgresError, from_os_error
from infrastructure.outbound.embedded_postgres.libpq import complete_url, hide_variables
from infrastructure.outbound.embedded_postgres.locks import FileLock
from infrastructure.outbound.embedded_postgres.supervisor_process import (
    SupervisorArguments,
    SupervisorProcess,
)

_POLL_SECONDS = 0.01
_POLL_SECONDS_MAX = 0.1
_CONNECT_SECONDS_MAX = 5
_STOP_SECONDS_MAX = 10.0
_LAUNCHES_MAX = 5
_MAINTENANCE_DATABASE = "postgres"
# The server is alive, but all of its connections are in use.
_CROWDED = ("too many clients", "remaining connection slots")


class EmbeddedPostgres:
    """A use of the PostgreSQL server of one home directory.

    All uses of a home, in any number of processes, share one server. It stops when the last use is
    closed or its process has died. All methods block, and are thread-safe.
    """

    def __init__(self, home: Home, directories: list[Path], timeout_seconds: float) -> None:
        self._home = home
        self._directories = directories
        self._timeout_seconds = timeout_seconds
        self._turn = threading.Lock()
        self._use: FileLock | None = None
        self._closed = False

    @classmethod
    def start(
        cls, home: Path, *, binaries: Path | None = None, timeout_seconds: float = 60.0
    ) -> Self:
        """Join the server of `home`, or start it. The home is created if it is missing.

        Args:
            home: Home directory.
            binaries: Directory with `postgres` and `initdb`. Default: those of the installed wheel.
            timeout_seconds: Timeout of the start.

        Raises:
            EmbeddedPostgresError: The server cannot run. The message says what to do.
        """
        if sys.platform == "win32":
            raise EmbeddedPostgresError(
                "there is no embedded PostgreSQL on Windows: use another server with --database-url"
            )
        directories = (
            programs.installed_directories() if binaries is None else [binaries.absolute()]
        )
        hide_variables()
        started = cls(Home.at(home), directories, timeout_seconds)
        started.ensure_running()
        return started

    @property
    def conninfo(self) -> str:
        """Return the libpq URL of the database over the Unix socket. SQLAlchemy needs its own
        scheme.
        """
        return complete_url(self._home.conninfo(), self._home.data)

    def ensure_running(self) -> None:
        """Return when the server accepts connections; if it does not, join it or start it again.

        Call this before reconnecting after a lost connection.

        Raises:
            EmbeddedPostgresError: The server cannot run, or this use is closed.
        """
        deadline = time.monotonic() + self._timeout_seconds
        with self._turn:
            if self._closed:
                raise EmbeddedPostgresError(
                    "this use of the embedded PostgreSQL was closed: start it again"
                )
            if self._holds() and self._answer(DATABASE) is None:
                return
            try:
                self._home.root.mkdir(mode=0o700, parents=True, exist_ok=True)
                starting = FileLock(self._home.start_lock)
            except OSError as error:
                raise from_os_error(error, self._home.root) from error
            try:
                self._wait_for(starting.try_exclusive, deadline)
                self._join_or_start(deadline)
            finally:
                starting.close()

    def close(self) -> None:
        """Leave the server. The last user waits until it has stopped, at most 10 seconds."""
        with self._turn:
            self._closed = True
            if self._use is None:
                return
            last = self._use.try_exclusive()
            self._use.close()
            self._use = None
            if last:
                self._wait_until_stopped()

    def _holds(self) -> bool:
        return self._use is not None and self._use.is_current()

    def _join_or_start(self, deadline: float) -> None:
        """Register as a user, then bring the server up. Call it while holding the start lock."""
        held_before = self._holds()
        try:
            if not held_before:
                if self._use is not None:
                    self._use.close()
                self._use = FileLock(self._home.holders_lock)
                self._wait_for(self._use.try_shared, deadline)
            self._bring_up(deadline)
        except BaseException as error:
            if not held_before and self._use is not None:
                self._use.close()
                self._use = None
            if isinstance(error, OSError):
                raise from_os_error(error, self._home.root) from error
            raise

    def _bring_up(self, deadline: float) -> None:
        launched: SupervisorProcess | None = None
        launches = 0
        pause = _POLL_SECONDS
        try:
            while (problem := self._make_database()) is not None:
                if launched is None:
                    launched = self._launch(deadline)
                    launches += launched is not None
                elif (reason := launched.ended_because()) is not None:
                    launched.close()
                    launched = None
                    if reason or launches >= _LAUNCHES_MAX:
                        raise EmbeddedPostgresError(
                            reason
                            or f"the supervisor of the embedded PostgreSQL was killed "
                            f"{launches} times while it started; try again"
                        )
                if time.monotonic() > deadline:
                    raise self._too_slow(problem)
                time.sleep(pause)
                pause = min(pause * 1.2, _POLL_SECONDS_MAX)
        finally:
            if launched is not None:
                launched.close()

    def _launch(self, deadline: float) -> SupervisorProcess | None:
        """Start a supervisor. Return None while one is running, or a server is still stopping."""
        lock = FileLock(self._home.server_lock)
        try:
            if not lock.try_exclusive():
                return None
            return SupervisorProcess(
                SupervisorArguments(self._home.root, self._directories, lock.fileno()),
                timeout_seconds=max(1.0, deadline - time.monotonic()),
            )
        finally:
            lock.close()

    def _make_database(self) -> str | None:
        """Create the database if it is missing. Return None on success, else the problem."""
        return self._answer(_MAINTENANCE_DATABASE)

    def _answer(self, database: str) -> str | None:
        """Return None if the server accepts connections to `database`, else the problem."""
        try:
            url = complete_url(self._home.conninfo(database), self._home.data)
        except FileNotFoundError:
            return "it has no data yet"
        try:
            with psycopg.connect(
                url,
                autocommit=True,
                connect_timeout=_CONNECT_SECONDS_MAX,
            ) as connection:
                if database == _MAINTENANCE_DATABASE:
                    _create_database_if_missing(connection)
        except psycopg.OperationalError as error:
            text = str(error).strip()
            return None if any(words in text for words in _CROWDED) else text
        return None

    def _wait_for(self, try_lock: Callable[[], bool], deadline: float) -> None:
        while not try_lock():
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(
                    f"another process has been starting or stopping the embedded PostgreSQL in "
                    f"{self._home.root} for {self._timeout_seconds:g} s: try again; if this"
                    f" persists, see {self._home.log}"
                )
            time.sleep(_POLL_SECONDS)

    def _wait_until_stopped(self) -> None:
        deadline = time.monotonic() + _STOP_SECONDS_MAX
        try:
            server = FileLock(self._home.server_lock)
            users = FileLock(self._home.holders_lock)
        except OSError:
            return
        try:
            while not server.try_exclusive() and time.monotonic() < deadline:
                # Another user shares the lock: it has joined, and the server keeps running.
                if users.try_shared() and not users.try_exclusive():
                    return
                users.release()
                time.sleep(_POLL_SECONDS)
        finally:
            users.close()
            server.close()

    def _too_slow(self, problem: str) -> EmbeddedPostgresError:
        return EmbeddedPostgresError(
            f"the embedded PostgreSQL in {self._home.root} did not answer within "
            f"{self._timeout_seconds:g} s ({problem}): after a crash it may still be recovering, "
            f"so try again; its log is {self._home.log}"
        )


def _create_database_if_missing(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
    if found.fetchone() is None:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))

"""Slow commits, as on a slower disk.

PostgreSQL itself can wait before it flushes: with `commit_delay`, and `commit_siblings` 0, each
flush sleeps that long first, even if no other commit is in progress.
"""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

DELAY_MS = 2
PROBES = 60
EFFECT_SECONDS_MAX = 10.0


@contextmanager
def slowed_commits(conninfo: str) -> Iterator[None]:
    """Slow down all commits of the server during the block. The server must not be shared."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET commit_delay = {DELAY_MS * 1000}".encode())
        connection.execute("ALTER SYSTEM SET commit_siblings = 0")
        _reload(connection, conninfo, str(DELAY_MS * 1000))
        try:
            yield
        finally:
            connection.execute("ALTER SYSTEM RESET commit_delay")
            connection.execute("ALTER SYSTEM RESET commit_siblings")
            _reload(connection, conninfo, "0")


def commit_ms(conninfo: str) -> float:
    """Return the median duration of a small transaction in milliseconds, without other commits."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS commit_probe (number integer)")
        took: list[float] = []
        for number in range(PROBES):
            began = time.perf_counter()
            connection.execute("INSERT INTO commit_probe VALUES (%s)", [number])
            took.append(time.perf_counter() - began)
    return statistics.median(took) * 1000


def _reload(
    connection: "psycopg.Connection[tuple[object, ...]]", conninfo: str, expected: str
) -> None:
    """Have the setting take effect, and wait until new connections see it."""
    connection.execute("SELECT pg_reload_conf()")
    deadline = time.monotonic() + EFFECT_SECONDS_MAX
    while True:
        with psycopg.connect(conninfo) as fresh:
            row = fresh.execute(
                "SELECT setting FROM pg_settings WHERE name = 'commit_delay'"
            ).fetchone()
        if row == (expected,):
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"commit_delay is {row}, and should be {expected}")
        time.sleep(0.05)

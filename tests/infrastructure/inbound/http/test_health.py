"""Liveness and readiness, also without a database; on a separate server and database."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import httpx2
import pytest

from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from infrastructure.server.database import migrate_database
from tests.support.http.problems import problem_of
from tests.support.http.wire import client_of
from tests.support.servers.configurations import agent, configuration
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server


@contextmanager
def database(home: Path) -> Iterator[str]:
    """Run a PostgreSQL server during the block, and yield its URL."""
    used = EmbeddedPostgres.start(home)
    try:
        yield used.conninfo
    finally:
        used.close()


def test_readiness_follows_the_database(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("health")
    folder.chmod(0o755)
    home = folder / "postgres"
    config = configuration(agent())
    with database(home) as url:
        migrate_database(url, home)
        server = Server(folder / "data", config, arguments=("--database-url", url))
        server.start()
    try:
        with client_of(server.url) as nobody:
            away(nobody)
            with database(home) as again:
                assert again == url
                back(nobody)
                assert server.spawn().status_code == 201
                assert server.stop() == 0
    finally:
        server.stop()


def away(nobody: httpx2.Client) -> None:
    """Assert the answers while the database is stopped."""
    assert nobody.get("/healthz").json() == {"status": "ok", "version": version("spawnlog")}
    for _ in range(2):
        began = time.monotonic()
        answer = nobody.get("/readyz")
        assert time.monotonic() - began < 3.5
        problem = problem_of(answer, 503, "unavailable")
        assert problem["retryable"] is True
        assert int(answer.headers["retry-after"]) >= 1
        assert "postgresql://" not in answer.text


def back(nobody: httpx2.Client) -> None:
    """Assert the answers once the database is back."""
    answer = wait_for(
        "readiness", lambda: (ready := nobody.get("/readyz")).status_code == 200 and ready
    )
    assert isinstance(answer, httpx2.Response)
    assert set(answer.json()) == {"status", "head", "tail"}
    assert answer.json()["status"] == "ready"

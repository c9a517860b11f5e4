"""Several servers on one data directory: the command line finds one that is alive."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.servers.configurations import agent, configuration
from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.preloaded import run_command
from tests.support.servers.server import Server

pytestmark = pytest.mark.kill


@pytest.fixture
def servers(made_data_dir: Path) -> Iterator[list[Server]]:
    """Yield two servers that are not started."""
    with new_place() as place:
        data = copied(made_data_dir, place / "data")
        made = [Server(data, configuration(agent())) for _ in range(2)]
        made[1].log_path = place / "second.log"
        try:
            yield made
        finally:
            for server in made:
                server.stop()


def list_agents(server: Server) -> subprocess.CompletedProcess[str]:
    return run_command("agent", "list", "--data-dir", str(server.data_dir))


def assert_found(server: Server) -> None:
    request = list_agents(server)
    assert request.returncode == 0, request.stderr
    assert "main" in request.stdout


def entries_of(server: Server) -> list[dict[str, Any]]:
    paths = sorted((server.data_dir / "servers").iterdir())
    return [json.loads(path.read_bytes()) for path in paths]


def entries(server: Server) -> list[str]:
    return [entry["url"] for entry in entries_of(server)]


def serve(data_dir: Path, url: str = "") -> str:
    """Try to start a server. Return its refusal."""
    database = ["--database-url", url] if url else []
    request = run_command("serve", "--data-dir", str(data_dir), "--port", "0", *database)
    assert request.returncode == 2, request
    assert request.stdout == ""
    return request.stderr


def test_other_log_is_refused_beside_a_running_server(
    servers: list[Server], database_url: str
) -> None:
    server, _ = servers
    server.start()
    refusal = serve(server.data_dir, database_url)
    assert "; start without a database URL (" in refusal
    assert database_url not in refusal
    with psycopg.connect(database_url) as connection:
        home = connection.execute("SELECT storage_home FROM log_head").fetchone()
    assert home == (None,), "another directory may still take it"


def test_log_in_external_database_is_not_left(database_url: str) -> None:
    with new_place() as place:
        with Server(place / "data", configuration(agent()), database_url=database_url) as server:
            (log_id,) = {entry["logId"] for entry in entries_of(server)}
        refusal = serve(server.data_dir)
        assert f"has its log {log_id} in an external database; start with the same" in refusal
        assert not (server.data_dir / "postgres").exists()
        with server.twin():
            pass


def test_second_server_leaves_the_first_findable(servers: list[Server]) -> None:
    first, second = servers
    first.start()
    second.start()
    assert entries(first) == [first.url, second.url]
    assert_found(first)
    assert second.stop() == 0
    assert entries(first) == [first.url]
    assert_found(first)
    assert first.stop() == 0
    assert entries(first) == []


def test_killed_server_is_passed_over(servers: list[Server]) -> None:
    first, second = servers
    first.start()
    second.start()
    second.kill()
    assert_found(first)
    second.start()
    assert entries(first) == [first.url, second.url]
    second.kill()
    first.kill()
    lost = list_agents(first)
    assert lost.returncode == 5, lost
    assert f"the servers of the data directory {first.data_dir} were killed: " in lost.stderr
    assert first.url in lost.stderr
    assert second.url in lost.stderr

"""Several servers on one data directory: the command line finds one that is alive."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

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
    asked = list_agents(server)
    assert asked.returncode == 0, asked.stderr
    assert "main" in asked.stdout


def entries(server: Server) -> list[str]:
    paths = sorted((server.data_dir / "servers").iterdir())
    return [json.loads(path.read_bytes())["url"] for path in paths]


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

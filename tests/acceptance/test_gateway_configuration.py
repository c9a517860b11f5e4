"""The configuration of a gateway works unchanged, with one additional runtime."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.data_directories import new_place
from tests.support.servers.databases import Databases
from tests.support.servers.preloaded import ROOT
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

CONFIG = ROOT / "examples" / "openclaw" / "openclaw.json5"


@pytest.fixture(scope="module")
def workspace() -> Iterator[Path]:
    """Yield the workspace of the gateway."""
    with new_place() as place:
        yield place


@pytest.fixture(scope="module")
def server(workspace: Path, databases: Databases) -> Iterator[Server]:
    """Yield a server with the example."""
    environment = {
        "GATEWAY_TOKEN": "t",
        "ANTHROPIC_API_KEY": "k",
        "DISCORD_TOKEN": "d",
        "OPENCLAW_WORKSPACE": str(workspace),
    }
    with new_place() as place:
        url = databases.create()
        running = Server(place / "data", CONFIG, database_url=url, environment=environment)
        with running:
            yield running
        running.require_sound_log()
        databases.drop(url)


def test_a_child_is_planned_as_the_gateway_would_and_executed_by_the_runtime(
    server: Server,
) -> None:
    answer = server.spawn("look into it", agentId="research")
    assert answer.status_code == 201, answer.text
    run = server.run(answer.json()["runId"], "announced")
    assert (run["outcome"], run["error"]) == ("success", None)
    assert "look into it" in run["resultText"]
    planned = (run["modelProvider"], run["model"], run["thinking"], run["runTimeoutSeconds"])
    assert planned == ("anthropic", "claude-sonnet-4-6", "high", 900)
    assert {"gateway", "cron"} <= set(run["tools"]["deny"])
    assert run["warnings"] == []


def test_what_only_the_gateway_reads_is_kept_without_its_secrets(server: Server) -> None:
    agents = server.http.get("/v1/agents").json()["agents"]
    assert [agent["id"] for agent in agents] == ["main", "research"]
    assert "DISCORD_TOKEN" not in server.log()

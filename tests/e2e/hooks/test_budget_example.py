"""`examples/budget.py`, which refuses spawns once the runs of the day have reached a cost."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers.configurations import agent, configuration, shell
from tests.support.servers.databases import Databases
from tests.support.servers.preloaded import ROOT
from tests.support.servers.server import Server, serving

pytestmark = [pytest.mark.server, pytest.mark.nightly]
USED = {"type": "usage", "inputTokens": 500_000, "outputTokens": 0, "provider": "p", "model": "m"}
PAID = shell(f"echo '{json.dumps(USED)}'", output="jsonl")
PRICES = {"providers": {"p": {"models": [{"id": "m", "cost": {"input": 1.0, "output": 2.0}}]}}}
"""Half a dollar per run."""


@pytest.fixture
def server(databases: Databases) -> Iterator[Server]:
    values = configuration(agent("main", PAID, default=True), models=PRICES)
    with serving(databases, values) as running:
        yield running


@pytest.fixture
def budget_url(server: Server) -> Iterator[str]:
    """Yield the address of the program, with a budget of 80 cents per day."""
    with subprocess.Popen(
        [sys.executable, ROOT / "examples" / "budget.py", "--port", "0", "--dollars", "0.8"],
        env={**os.environ, "SPAWNLOG_URL": server.url, "SPAWNLOG_TOKEN": server.token},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as program:
        assert program.stdout is not None
        yield program.stdout.readline().removeprefix("listening on ").strip()
        program.terminate()


def test_budget_refuses_spawn_after_cost_is_reached(server: Server, budget_url: str) -> None:
    def add_hook(values: dict[str, Any]) -> None:
        values["spawnlog"]["hooks"] = {"prepareSubagentSpawn": {"url": budget_url}}

    with server.configured(add_hook):
        for _ in range(2):
            server.announced()
        refused = server.spawn()
        assert refused.status_code == 422, refused.text
        assert refused.json()["rule"] == "context_engine"
        assert refused.json()["detail"].endswith("the hook answered HTTP 402")

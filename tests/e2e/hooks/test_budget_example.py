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
def budget_url(server: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield the address of the program, with the budget of these flags."""
    with subprocess.Popen(
        [sys.executable, ROOT / "examples" / "budget.py", "--port", "0", *request.param],
        env={**os.environ, "SPAWNLOG_URL": server.url, "SPAWNLOG_TOKEN": server.token},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as program:
        assert program.stdout is not None
        yield program.stdout.readline().removeprefix("listening on ").strip()
        program.terminate()


@pytest.mark.parametrize(
    ("budget_url", "whose"),
    [(("--dollars", "0.8"), "today"), (("--agent", "main=0.8"), "agent main today")],
    indirect=["budget_url"],
)
def test_budget_refuses_spawn_after_cost_is_reached(
    server: Server, budget_url: str, whose: str
) -> None:
    def add_hook(values: dict[str, Any]) -> None:
        values["spawnlog"]["hooks"] = {"prepareSubagentSpawn": {"url": budget_url}}

    with server.configured(add_hook):
        for _ in range(2):
            server.announced()
        refused = server.spawn()
        assert refused.status_code == 422, refused.text
        assert refused.json()["rule"] == "context_engine"
        spent = f"the budget of $0.8 for {whose} is spent ($1.00)"
        assert refused.json()["detail"].endswith(f"preparation failed: {spent}")

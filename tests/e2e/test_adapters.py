"""Tools for the agent libraries in use spawn sub-agents: the real libraries, with scripted models.

The libraries are in an environment of their own, which `make adapters` makes: they are heavy.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.running_server import RunningServer, configuration, scripted

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".build" / "adapters" / "bin" / "python"
PROGRAMS = ROOT / "tests" / "support" / "adapter_programs"
ADAPTERS = ROOT / "examples" / "adapters"
LIBRARIES = ("langgraph", "openai_agents", "pydantic_ai")
SESSION = "agent:main:adapters"


@pytest.fixture(scope="module")
def server(made_data_dir: Path) -> Iterator[RunningServer]:
    if not PYTHON.exists():
        told = "the libraries of the adapters are not installed here: run `make adapters`"
        if os.environ.get("CI"):
            pytest.fail(told)
        pytest.skip(f"NOT TESTED: {told}")
    config = configuration(
        {**scripted("main"), "default": True}, scripted("counter", result="There are 41 ships.")
    )
    with (
        new_place() as place,
        RunningServer(copied(made_data_dir, place / "data"), config) as server,
    ):
        yield server


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_model_spawns_and_is_told_what_came_of_it(server: RunningServer, library: str) -> None:
    finished = subprocess.run(
        [PYTHON, PROGRAMS / f"{library}_program.py"],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ADAPTERS),
            "SPAWNLOG_URL": server.url,
            "SPAWNLOG_TOKEN": server.token,
            "SPAWNLOG_SESSION_KEY": f"{SESSION}-{library}",
        },
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    told = json.loads(finished.stdout)["answer"].splitlines()
    assert told[0] == "There are 41 ships."
    assert told[1].startswith('No sub-agent was spawned: Agent "stranger" is not configured')
    query = {"requester": f"{SESSION}-{library}", "order": "asc"}
    runs = server.http.get("/v1/runs", params=query).json()["items"]
    assert sorted(run["status"] for run in runs) == ["done", "refused"]


def test_every_adapter_is_tested() -> None:
    assert {path.stem for path in ADAPTERS.glob("*_tool.py")} == {
        f"{one}_tool" for one in LIBRARIES
    }

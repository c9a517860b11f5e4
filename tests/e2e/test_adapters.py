"""Tools for agent libraries spawn sub-agents: the real libraries, with scripted models.

The libraries are heavy, so `make adapters` makes a separate environment for them.
"""

import asyncio
import importlib
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from tests.support.servers.configurations import agent, configuration, scripted
from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.server import Server

pytestmark = [pytest.mark.server, pytest.mark.nightly]

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".build" / "adapters" / "bin" / "python"
PROGRAMS = ROOT / "tests" / "support" / "adapter_programs"
ADAPTERS = ROOT / "examples" / "adapters"
LIBRARIES = ("langgraph", "openai_agents", "pydantic_ai")
SESSION = "agent:main:adapters"


@pytest.fixture(scope="module")
def server(made_data_dir: Path) -> Iterator[Server]:
    if not PYTHON.exists():
        text = "the libraries of the adapters are not installed here: run `make adapters`"
        if os.environ.get("CI"):
            pytest.fail(text)
        pytest.skip(f"NOT TESTED: {text}")
    config = configuration(
        agent("main", default=True), agent("counter", scripted(result="There are 41 ships."))
    )
    with (
        new_place() as place,
        Server(copied(made_data_dir, place / "data"), config) as server,
    ):
        yield server


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_model_spawns_and_is_told_what_came_of_it(server: Server, library: str) -> None:
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
    result = json.loads(finished.stdout)["answer"].splitlines()
    assert result[0] == "There are 41 ships."
    assert result[1].startswith('No sub-agent was spawned: Agent "stranger" is not configured')
    query = {"requester": f"{SESSION}-{library}", "order": "asc"}
    runs = server.http.get("/v1/runs", params=query).json()["items"]
    assert sorted(run["status"] for run in runs) == ["done", "refused"]


def test_every_adapter_is_tested() -> None:
    assert {path.stem for path in ADAPTERS.glob("*_tool.py")} == {
        f"{library}_tool" for library in LIBRARIES
    }


class _Answers(BaseHTTPRequestHandler):
    """Server that sends answers one after the other, as for a sub-agent that takes long."""

    left: ClassVar[list[dict[str, object]]] = []
    requests: ClassVar[list[str]] = []

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.requests.append(self.path.partition("?")[0])
        body = json.dumps(self.left.pop(0)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _answer

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def test_the_answer_is_waited_for_however_long_it_takes_and_whichever_run_it_is_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ADAPTERS)
    subagents = importlib.import_module("subagents")
    _Answers.left[:] = [
        {"runId": "first"},
        {"runId": "first", "stage": "started", "continuedBy": None},
        {
            "runId": "first",
            "stage": "ended",
            "continuedBy": "second",
            "announcement": {"state": "skipped"},
        },
        {"runId": "second", "stage": "queued", "continuedBy": None},
        {
            "runId": "second",
            "stage": "announced",
            # Its session was continued later; this result is its own.
            "continuedBy": "third",
            "announcement": {"state": "delivered"},
            "outcome": "success",
            "resultText": "41 ships",
        },
    ]
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as answering:
        thread = threading.Thread(target=answering.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("SPAWNLOG_URL", f"http://127.0.0.1:{answering.server_port}")
        monkeypatch.setenv("SPAWNLOG_TOKEN", "none")
        monkeypatch.setenv("SPAWNLOG_SESSION_KEY", SESSION)
        try:
            assert asyncio.run(subagents.answer_of_subagent("count")) == "41 ships"
        finally:
            answering.shutdown()
            thread.join()
    assert _Answers.left == []
    assert _Answers.requests == ["/v1/spawns", *["/v1/runs/first"] * 2, *["/v1/runs/second"] * 2]

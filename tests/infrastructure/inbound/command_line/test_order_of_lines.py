"""Answers on standard output and remarks on standard error, in one pipe as in a terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.recorded_api import RecordedApi, Reply

RUN = "11111111-0000-4000-8000-000000000001"
DONE = {"stage": "announced", "outcome": "success", "status": "done", "runtimeMs": 324}
LINES = [
    f"run {RUN} is accepted; waiting for its announcement",
    "low tide at six",
    f"run {RUN} is done after 324ms",
]


@pytest.fixture
def command(api: RecordedApi, tmp_path: Path) -> dict[str, Any]:
    """The arguments of a process that spawns and waits."""
    api.on("POST", "/v1/spawns", Reply({"status": "accepted", "runId": RUN}, 202))
    api.on("GET", f"/v1/runs/{RUN}", Reply({"runId": RUN, **DONE, "resultText": LINES[1]}))
    own = {
        "SPAWNLOG_URL": api.url,
        "SPAWNLOG_TOKEN": "a-token",
        "SPAWNLOG_DATA_DIR": str(tmp_path),
    }
    return {
        "args": [Path(sys.executable).parent / "spawnlog", "spawn", "Count", "--wait"],
        # Python buffers what goes into a pipe, unless it is told otherwise.
        "env": {**os.environ, **own, "PYTHONUNBUFFERED": ""},
    }


@pytest.mark.process
def test_pipe_has_the_order_of_the_terminal(command: dict[str, Any]) -> None:
    piped = subprocess.run(
        **command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
    )
    assert piped.stdout.splitlines() == LINES
    screen, terminal = pty.openpty()
    try:
        subprocess.run(**command, stdout=terminal, stderr=terminal, check=True)
        shown = os.read(screen, 65_536).decode()
    finally:
        os.close(terminal)
        os.close(screen)
    assert shown.splitlines() == LINES

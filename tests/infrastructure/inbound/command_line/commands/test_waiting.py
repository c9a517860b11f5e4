"""Waiting for a run: progress, result, Ctrl-C and the order of lines."""

import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import Asked, RecordedApi, Reply, problem

RUN = "11111111-0000-4000-8000-000000000001"
TRANSCRIPT = f"/v1/runs/{RUN}/transcript"
DONE = {"runId": RUN, "stage": "announced", "outcome": "success", "status": "done", "runtimeMs": 7}
ACCEPTED_LINE = f"run {RUN} is accepted; waiting for its announcement"
DONE_LINE = f"run {RUN} is done after 7ms"
Started = Callable[..., "subprocess.Popen[str]"]


def entry(sequence: int, kind: str, text: str) -> dict[str, Any]:
    body = {"text": text}
    return {"sequence": sequence, "recordedAt": "2026-03-01T09:00:00Z", "kind": kind, "body": body}


def page(*items: dict[str, Any], last: int, complete: bool = False) -> Reply:
    return Reply(
        {"items": list(items), "nextAfter": None, "lastSequence": last, "complete": complete}
    )


@pytest.fixture
def server(api: RecordedApi) -> RecordedApi:
    """Return a server with a run that makes progress twice while it is followed."""
    api.on(
        "GET",
        TRANSCRIPT,
        page(entry(1, "message", "task"), last=1),
        page(entry(2, "progress", "half of it"), last=2),
        page(last=2),
        page(entry(4, "result", "all of it"), last=4, complete=True),
    )
    api.on("GET", f"/v1/runs/{RUN}", Reply({**DONE, "resultText": "all of it"}))
    api.on("POST", "/v1/spawns", Reply({"status": "accepted", "runId": RUN, "label": "tides"}, 202))
    return api


@pytest.fixture
def start(api: RecordedApi, tmp_path: Path) -> Started:
    """Start `spawnlog spawn --wait` as a process, whose pipes Python buffers."""
    own = {"SPAWNLOG_URL": api.url, "SPAWNLOG_TOKEN": "t", "SPAWNLOG_DATA_DIR": str(tmp_path)}
    command = [str(Path(sys.executable).parent / "spawnlog"), "spawn", "Count", "--wait"]

    def started(*options: str, **streams: Any) -> "subprocess.Popen[str]":
        environment = {**os.environ, **own, "PYTHONUNBUFFERED": ""}
        return subprocess.Popen([*command, *options], env=environment, text=True, **streams)

    return started


def shown_on_terminal(start: Started, *options: str) -> list[str]:
    screen, terminal = pty.openpty()
    try:
        with start(*options, stdout=terminal, stderr=terminal) as command:
            assert command.wait(60) == 0
        return os.read(screen, 65_536).decode().splitlines()
    finally:
        os.close(terminal)
        os.close(screen)


def test_interrupted_wait_names_continuing_run(api: RecordedApi, start: Started) -> None:
    is_waiting = threading.Event()

    def running(_: Asked) -> Reply:
        is_waiting.set()
        return Reply({"runId": RUN, "stage": "started", "status": "running"})

    api.on("POST", "/v1/spawns", Reply({"status": "accepted", "runId": RUN}, 202))
    api.on("GET", f"/v1/runs/{RUN}", running)
    with start(stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
        assert is_waiting.wait(30)
        command.send_signal(signal.SIGINT)
        out, err = command.communicate(timeout=30)
    assert (command.returncode, out) == (130, "")
    assert f"run {RUN} continues" in err
    assert f"spawnlog run stop {RUN}" in err
    assert "Traceback" not in err


def test_log_is_followed_until_run_ends(spawnlog: Command, server: RecordedApi) -> None:
    result = spawnlog("run", "log", RUN, "--follow")
    assert result.exit_code == 0
    texts = [line.strip() for line in result.stdout.splitlines() if line.startswith("    ")]
    assert texts == ["task", "half of it", "all of it"]
    assert f"run {RUN} is done" in result.stderr
    queries = [request.query for request in server.asked if request.path == TRANSCRIPT]
    assert [request.get("after") for request in queries] == [None, "1", "2", "2"]
    assert {request.get("wait") for request in queries[1:]} == {"30s"}


def test_wait_shows_progress_on_terminal(server: RecordedApi, start: Started) -> None:
    shown = shown_on_terminal(start)
    assert shown == [ACCEPTED_LINE, "tides: half of it", "all of it", DONE_LINE]
    server.on("GET", TRANSCRIPT, problem(403, code="not_permitted", detail="scope content"))
    assert shown_on_terminal(start) == [ACCEPTED_LINE, "all of it", DONE_LINE]
    assert shown_on_terminal(start, "--quiet") == ["all of it"]


@pytest.mark.process
def test_wait_in_pipe_keeps_order_and_follows_nothing(server: RecordedApi, start: Started) -> None:
    with start(stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as command:
        out, _ = command.communicate(timeout=60)
    assert out.splitlines() == [ACCEPTED_LINE, "all of it", DONE_LINE]
    assert not any(
        "wait" in request.query for request in server.asked if request.path == TRANSCRIPT
    )

"""A run that is waited for: Ctrl-C, its transcript, the order of lines."""

import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import Asked, RecordedApi, Reply, problem

RUN = "11111111-0000-4000-8000-000000000001"


def test_interrupted_wait_names_the_run_that_continues(api: RecordedApi, tmp_path: Path) -> None:
    is_waiting = threading.Event()

    def running(_: Asked) -> Reply:
        is_waiting.set()
        return Reply({"runId": RUN, "stage": "started", "status": "running"})

    api.on("POST", "/v1/spawns", Reply({"status": "accepted", "runId": RUN}, 202))
    api.on("GET", f"/v1/runs/{RUN}", running)
    environment = {
        **os.environ,
        "SPAWNLOG_URL": api.url,
        "SPAWNLOG_TOKEN": "a-token",
        "SPAWNLOG_DATA_DIR": str(tmp_path),
    }
    with subprocess.Popen(
        [Path(sys.executable).parent / "spawnlog", "spawn", "Count", "--wait"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert is_waiting.wait(30)
        command.send_signal(signal.SIGINT)
        out, err = command.communicate(timeout=30)
    assert command.returncode == 130
    assert out == ""
    assert f"run {RUN} continues" in err
    assert f"spawnlog run stop {RUN}" in err
    assert "Traceback" not in err


PATH = f"/v1/runs/{RUN}/transcript"

OVER = {"runId": RUN, "stage": "announced", "outcome": "success", "status": "done"}


def entry(sequence: int, kind: str, text: str) -> dict[str, Any]:
    body = {"text": text}
    return {"sequence": sequence, "recordedAt": "2026-03-01T09:00:00Z", "kind": kind, "body": body}


def page(*items: dict[str, Any], last: int, complete: bool = False) -> Reply:
    return Reply(
        {"items": list(items), "nextAfter": None, "lastSequence": last, "complete": complete}
    )


@pytest.fixture
def server(api: RecordedApi) -> RecordedApi:
    """A run that says two things while it is followed."""
    api.on(
        "GET",
        PATH,
        page(entry(1, "message", "task"), last=1),
        page(entry(2, "progress", "half of it"), last=2),
        page(last=2),
        page(entry(4, "result", "all of it"), last=4, complete=True),
    )
    api.on("GET", f"/v1/runs/{RUN}", Reply({**OVER, "resultText": "all of it", "runtimeMs": 7}))
    api.on("POST", "/v1/spawns", Reply({"status": "accepted", "runId": RUN, "label": "tides"}, 202))
    return api


def test_log_is_followed_to_the_end_of_the_run(spawnlog: Command, server: RecordedApi) -> None:
    told = spawnlog("run", "log", RUN, "--follow")
    assert told.exit_code == 0
    texts = [line.strip() for line in told.stdout.splitlines() if line.startswith("    ")]
    assert texts == ["task", "half of it", "all of it"]
    assert f"run {RUN} is done" in told.stderr
    asked = [one.query for one in server.asked if one.path == PATH]
    assert [one.get("after") for one in asked] == [None, "1", "2", "2"]
    assert {one.get("wait") for one in asked[1:]} == {"30s"}


@pytest.mark.parametrize(
    "wrong", [["--at", "1h"], ["-o", "json"], ["-o", "yaml"], ["--after", "1", "--limit", "200"]]
)
def test_followed_log_is_a_stream_from_now(
    spawnlog: Command, server: RecordedApi, wrong: list[str]
) -> None:
    assert spawnlog("run", "log", RUN, "-f", *wrong).exit_code == 2
    assert server.asked == []


def spawned_on_a_terminal(api: RecordedApi, folder: Path, *options: str) -> list[str]:
    screen, terminal = pty.openpty()
    try:
        subprocess.run(
            [Path(sys.executable).parent / "spawnlog", "spawn", "Count", "--wait", *options],
            env={
                **os.environ,
                "SPAWNLOG_URL": api.url,
                "SPAWNLOG_TOKEN": "a-token",
                "SPAWNLOG_DATA_DIR": str(folder),
            },
            stdout=terminal,
            stderr=terminal,
            check=True,
        )
        return os.read(screen, 65_536).decode().splitlines()
    finally:
        os.close(terminal)
        os.close(screen)


def test_wait_shows_progress_on_a_terminal(server: RecordedApi, tmp_path: Path) -> None:
    assert spawned_on_a_terminal(server, tmp_path) == [
        f"run {RUN} is accepted; waiting for its announcement",
        "tides: half of it",
        "all of it",
        f"run {RUN} is done after 7ms",
    ]


def test_quiet_wait_shows_the_result_alone(server: RecordedApi, tmp_path: Path) -> None:
    assert spawned_on_a_terminal(server, tmp_path, "--quiet") == ["all of it"]


def test_wait_needs_no_right_to_see_progress(server: RecordedApi, tmp_path: Path) -> None:
    server.on("GET", PATH, problem(403, code="not_permitted", detail="scope content"))
    assert spawned_on_a_terminal(server, tmp_path)[1:] == [
        "all of it",
        f"run {RUN} is done after 7ms",
    ]


def test_wait_in_a_pipe_follows_no_transcript(spawnlog: Command, server: RecordedApi) -> None:
    assert spawnlog("spawn", "Count", "--wait").stdout == "all of it\n"
    assert not any("wait" in one.query for one in server.asked if one.path == PATH)


def test_quiet_without_wait_is_refused(spawnlog: Command, server: RecordedApi) -> None:
    assert spawnlog("spawn", "Count", "--quiet").exit_code == 2


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

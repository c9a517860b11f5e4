"""Ctrl-C while a run is waited for."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from tests.support.servers.recorded_api import Asked, RecordedApi, Reply

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

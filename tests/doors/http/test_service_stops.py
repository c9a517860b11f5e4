"""A service that is told to stop does not wait for those who wait. A server of its own."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.http_streams import StreamReader
from tests.support.running_server import RunningServer, configuration, scripted, wait_for

pytestmark = pytest.mark.slow

READERS = 5


def test_open_streams_and_long_polls_hold_up_no_stop(tmp_path: Path) -> None:
    slow = scripted("main", steps=[{"afterMs": 300_000}])
    config = configuration(slow)
    config["spawnlog"]["drainSeconds"] = 0.5
    server = RunningServer(tmp_path / "data", config)
    server.start()
    try:
        run_id = server.spawn().json()["runId"]
        server.run(run_id, "started")
        with ThreadPoolExecutor(READERS * 2) as pool, ExitStack() as stack:
            streams = [
                stack.enter_context(StreamReader(server.url, "/v1/events?after=0", server.token))
                for _ in range(READERS)
            ]
            for stream in streams:
                stream.until(lambda frame: frame.event == "RunStarted")
            path = "/v1/sessions/agent:main:nobody/announcements?wait=60s"
            polls = [pool.submit(server.http.get, path) for _ in range(READERS)]
            waits = [pool.submit(server.run, run_id, "archived") for _ in range(READERS)]
            wait_for("all to ask", lambda: asked(server) >= READERS * 2)
            began = time.monotonic()
            assert server.process is not None
            server.process.terminate()
            for stream in streams:
                stream.ends(seconds=5)
            for poll in polls:
                assert poll.result(10).json()["items"] == []
            for wait in waits:
                assert wait.result(10)["runId"] == run_id
            assert server.process.wait(10) == 0
            assert time.monotonic() - began < 6
    finally:
        server.stop()
    assert " ERROR " not in server.log()
    assert "Traceback" not in server.log()


def asked(server: RunningServer) -> int:
    """How many connections to the server are open, by what the kernel knows of its port."""
    port = int(server.url.rsplit(":", 1)[1])
    rows = Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]
    local = f"0100007F:{port:04X}"
    return sum(row.split()[1] == local and row.split()[3] == "01" for row in rows) - READERS

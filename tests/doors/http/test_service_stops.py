"""A service that is told to stop does not wait for those who wait. A server of its own."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.http_streams import StreamReader
from tests.support.running_server import RunningServer, configuration, scripted, wait_for

pytestmark = pytest.mark.slow

READERS = 5
INBOX = "/v1/sessions/agent:main:nobody/announcements?wait=60s"


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that each test starts and stops; what it wrote is looked through at the end."""
    slow = scripted("main", steps=[{"afterMs": 300_000}])
    config = configuration(slow)
    config["spawnlog"]["drainSeconds"] = 0.5
    server = RunningServer(tmp_path_factory.mktemp("stops") / "data", config)
    yield server
    server.stop()
    assert " ERROR " not in server.log()
    assert "Traceback" not in server.log()


def test_waiting_readers_hold_up_no_stop_when_nothing_happens(stopped: RunningServer) -> None:
    stopped.start()
    with ThreadPoolExecutor(READERS) as pool, ExitStack() as stack:
        streams = [
            stack.enter_context(StreamReader(stopped.url, "/v1/events?after=0", stopped.token))
            for _ in range(READERS)
        ]
        for stream in streams:
            stream.event()
        polls = [pool.submit(stopped.http.get, INBOX) for _ in range(READERS)]
        wait_for("all to ask", lambda: connections(stopped) >= READERS * 2)
        seconds = terminated(stopped)
        for stream in streams:
            stream.ends(seconds=5)
        for poll in polls:
            assert poll.result(10).json()["items"] == []
    assert seconds < 4


def test_those_who_wait_for_a_run_are_told_how_it_stands(stopped: RunningServer) -> None:
    stopped.start()
    run_id = stopped.spawn().json()["runId"]
    stopped.run(run_id, "started")
    with ThreadPoolExecutor(READERS * 2) as pool:
        waits = [pool.submit(stopped.run, run_id, "archived") for _ in range(READERS)]
        wait_for("all to ask", lambda: connections(stopped) >= READERS)
        seconds = terminated(stopped)
        for wait in waits:
            assert wait.result(10)["runId"] == run_id
    assert seconds < 6


def terminated(server: RunningServer) -> float:
    """How many seconds a SIGTERM takes; the server must end in good order."""
    began = time.monotonic()
    assert server.process is not None
    server.process.terminate()
    assert server.process.wait(20) == 0
    return time.monotonic() - began


def connections(server: RunningServer) -> int:
    """How many connections to the server are open, by what the kernel knows of its port."""
    port = int(server.url.rsplit(":", 1)[1])
    rows = Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]
    local = f"0100007F:{port:04X}"
    return sum(row.split()[1] == local and row.split()[3] == "01" for row in rows)

"""A server with a lane of width 1 and without authentication, which stops at the end without
waiting for queued runs.

The tests run in this order on a server of their own.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.http.streams import StreamReader
from tests.support.servers.configurations import agent, configuration, scripted
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

READERS = 5
INBOX = "/v1/sessions/agent:main:nobody/announcements?wait=60s"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield the server; search everything that it wrote at the end."""
    slow = agent("main", scripted(steps=[{"afterMs": 300_000}]))
    config = configuration(slow, maxConcurrent=1)
    config["spawnlog"] |= {"drainSeconds": 0.5, "noAuth": True}
    server = Server(tmp_path_factory.mktemp("small") / "data", config)
    with server:
        yield server
    assert " ERROR " not in server.log()
    assert "Traceback" not in server.log()


def test_queued_run_has_place_and_reason(server: Server) -> None:
    first, second, third = [server.spawn(label=f"{n}").json()["runId"] for n in range(3)]
    server.run(first, "started")
    (lane,) = server.http.get("/v1/lanes").json()["items"]
    assert [run["runId"] for run in lane["running"]] == [first]
    waiting = [(run["runId"], run["place"], run["waitsFor"]) for run in lane["queued"]]
    assert waiting == [(second, 1, "a slot"), (third, 2, "a slot")]
    listed = server.http.get("/v1/runs", params={"status": "queued"}).json()["items"]
    assert [run["runId"] for run in listed] == [third, second]
    for run_id in (second, third, first):
        server.http.post(f"/v1/runs/{run_id}/stop")
        assert server.run(run_id, "ended")["outcome"] == "stopped"
    assert server.http.get("/v1/lanes").json()["items"] == []


def test_no_token_is_needed_without_authentication(server: Server) -> None:
    answer = server.http.get("/v1/runs", headers={"Authorization": "Bearer nonsense"})
    assert answer.status_code == 200
    assert "authentication is off" in server.log()
    refused = server.http.get("/v1/runs", headers={"Host": "evil.example"})
    assert refused.status_code == 403


def test_waiting_readers_hold_up_no_stop(server: Server) -> None:
    with ThreadPoolExecutor(READERS) as pool, ExitStack() as stack:
        streams = [
            stack.enter_context(StreamReader(server.url, "/v1/events?after=0", server.token))
            for _ in range(READERS)
        ]
        for stream in streams:
            stream.event()
        polls = [pool.submit(server.http.get, INBOX) for _ in range(READERS)]
        wait_for("all to ask", lambda: connections(server) >= READERS * 2)
        seconds = terminated(server)
        for stream in streams:
            stream.ends(seconds=5)
        for poll in polls:
            assert poll.result(10).json()["items"] == []
    server.stop()
    assert seconds < 4


def test_stop_answers_those_who_wait_for_runs(server: Server) -> None:
    server.start()
    run_id = server.spawn().json()["runId"]
    server.run(run_id, "started")
    with ThreadPoolExecutor(READERS * 2) as pool:
        waits = [pool.submit(server.run, run_id, "archived") for _ in range(READERS)]
        wait_for("all to ask", lambda: connections(server) >= READERS)
        seconds = terminated(server)
        for wait in waits:
            assert wait.result(10)["runId"] == run_id
    assert seconds < 6


def terminated(server: Server) -> float:
    """Return the seconds of a stop by SIGTERM; assert that it ends properly."""
    began = time.monotonic()
    assert server.process is not None
    server.process.terminate()
    assert server.process.wait(20) == 0
    return time.monotonic() - began


def connections(server: Server) -> int:
    """Return the number of open connections to the server's port, from the kernel."""
    port = int(server.url.rsplit(":", 1)[1])
    rows = Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]
    local = f"0100007F:{port:04X}"
    return sum(row.split()[1] == local and row.split()[3] == "01" for row in rows)

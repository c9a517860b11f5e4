"""Scripts that are at work when their server ends: nobody is left, and they run once more."""

import contextlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.support.builders.launches import program
from tests.support.servers.configurations import agent, configuration
from tests.support.servers.data_directories import new_place
from tests.support.servers.databases import Databases
from tests.support.servers.process_table import carrying
from tests.support.servers.server import QUICK_LEASE_SECONDS, Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.kill

TOKEN = "script-that-outlives-its-server-of-these-tests"
# It deafens itself, and has a daemon that left its group and holds its output open.
SCRIPT = f"""#!{sys.executable} -IS
import os, pathlib, signal, sys, time
attempt, folder = os.environ["SPAWNLOG_ATTEMPT"], pathlib.Path("@")
if attempt == "1":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, ["{TOKEN}", "-IS", "-c", "import time; time.sleep(600)"])
        os._exit(0)
    (folder / f"{{sys.argv[1]}}.began").touch()
    while True:
        time.sleep(600)
print(f"attempt {{attempt}} for {{sys.argv[1:]}}")
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with new_place() as place:
        yield place


@pytest.fixture
def server(folder: Path, databases: Databases) -> Iterator[Server]:
    script = program(folder / "script", SCRIPT.replace("@", str(folder)))
    entry = {"id": "s", "uri": str(script), "timeoutSeconds": 60, "argMap": {"t": "task"}}
    config = configuration(agent("main", default=True), contextScripts={"run": [entry]})
    config["spawnlog"]["leaseSeconds"] = QUICK_LEASE_SECONDS
    data_dir = folder / "data"
    url = databases.create()
    with Server(data_dir, config, database_url=url) as running:
        yield running
    databases.drop(url)


def begun(server: Server, folder: Path) -> None:
    """A spawn whose script is at work; who asked for it gets no answer."""

    def ask() -> None:
        with httpx2.Client(base_url=server.url, headers=dict(server.http.headers)) as client:
            body = {"requester": {"sessionKey": "agent:main:main"}, "task": "first"}
            with contextlib.suppress(httpx2.TransportError):
                client.post("/v1/spawns", json=body, headers={"Idempotency-Key": "k"})

    threading.Thread(target=ask, daemon=True).start()
    wait_for("the script to begin", (folder / "t=first.began").exists)
    wait_for("its daemon", lambda: carrying(TOKEN))


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_nobody_is_left_and_the_spawn_goes_on_with_the_next_server(
    server: Server, folder: Path, end: str
) -> None:
    begun(server, folder)
    if end == "kill":
        server.kill()
    else:
        assert server.stop() == 0
    wait_for("everybody to be gone", lambda: not carrying(TOKEN), seconds=5)
    server.start()
    (run,) = server.http.get("/v1/runs").json()["items"]
    assert server.run(run["runId"], "announced")["outcome"] == "success"
    events = server.http.get(f"/v1/runs/{run['runId']}/events").json()["items"]
    assert [one["type"] for one in events][:3] == [
        "SpawnRequested",
        "PreparationResumed",
        "ScriptsResolved",
    ]
    (receipt,) = events[2]["payload"]["receipts"]
    assert (receipt["outcome"], receipt["exitCode"]) == ("injected", 0)
    prompt = server.http.get(f"/v1/runs/{run['runId']}/prompt").json()
    assert prompt["message"].endswith("first\n\nattempt 2 for ['t=first']")


def test_each_task_of_a_batch_has_the_scripts_to_itself(server: Server, folder: Path) -> None:
    Path(folder / "script").write_text('#!/bin/sh\necho "for $SPAWNLOG_RUN_ID: $1"\n')
    tasks = ["one", "two", "three"]
    body = {"requester": {"sessionKey": "agent:main:main"}, "task": tasks, "parallel": True}
    answer = server.http.post("/v1/spawns", json=body)
    assert answer.status_code == 201, answer.text
    for task, run in zip(tasks, answer.json()["runs"], strict=True):
        server.run(run["runId"], "announced")
        prompt = server.http.get(f"/v1/runs/{run['runId']}/prompt").json()
        assert prompt["message"].endswith(f"{task}\n\nfor {run['runId']}: t={task}")

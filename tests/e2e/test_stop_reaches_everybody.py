"""A tree that grows while its root is stopped: everybody is reached, and every place is free."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers.configurations import agent, configuration
from tests.support.servers.data_directories import new_place
from tests.support.servers.process_table import carrying
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

ROOT_KEY = "agent:main:growing"
MARK = "spawnlog-growing-tree"
BRANCHES = 4
CHILDREN_MAX = 20
WIDTH = 4
LEAVES_BEFORE_THE_STOP = 6

_SPAWNER = """
import json, os, sys, time, urllib.error, urllib.request

def spawn(agent):
    body = {"requester": {"sessionKey": os.environ["SPAWNLOG_SESSION_KEY"]}, "task": "grow",
            "agentId": agent}
    request = urllib.request.Request(
        os.environ["SPAWNLOG_URL"] + "/v1/spawns",
        data=json.dumps(body).encode(),
        method="POST",
        headers={
            "Authorization": "Bearer " + os.environ["SPAWNLOG_TOKEN"],
            "Content-Type": "application/json",
        },
    )
    try:
        urllib.request.urlopen(request, timeout=20).close()
    except urllib.error.HTTPError as refusal:
        refusal.close()

for _ in range(int(sys.argv[3])):
    spawn(sys.argv[2])
time.sleep(600)
"""
_SLEEPER = "import time; time.sleep(600)"


def program(agent_id: str, script: str, *arguments: str) -> dict[str, Any]:
    """An agent that is a program with our mark on its command line."""
    argv = [sys.executable, "-I", "-S", "-c", script, MARK, *arguments]
    return {"id": agent_id, "runtime": {"type": "command", "command": argv}}


@pytest.fixture
def growing(module_database_url: str) -> Iterator[Server]:
    config = configuration(
        agent("main", default=True),
        program("trunk", _SPAWNER, "branch", str(BRANCHES)),
        program("branch", _SPAWNER, "leaf", str(CHILDREN_MAX)),
        program("leaf", _SLEEPER),
        maxSpawnDepth=3,
        maxConcurrent=WIDTH,
        maxChildrenPerAgent=CHILDREN_MAX,
    )
    config["spawnlog"] = {"leaseSeconds": 10, "drainSeconds": 1}
    with new_place() as place:
        data_dir = place / "data"
        with Server(data_dir, config, database_url=module_database_url) as server:
            yield server
        assert " ERROR " not in server.log(), server.log()


def tree(server: Server) -> list[dict[str, Any]]:
    """All runs of the tree."""
    query: dict[str, Any] = {"tree": ROOT_KEY, "limit": 500}
    answer = server.http.get("/v1/runs", params=query)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


def leaves(server: Server) -> int:
    return sum(run["agentId"] == "leaf" for run in tree(server))


def test_a_stop_in_the_middle_of_growth_ends_the_whole_tree(growing: Server) -> None:
    answer = growing.spawn("grow", session=ROOT_KEY, agentId="trunk")
    trunk = answer.json()["runId"]
    wait_for("the tree to grow", lambda: leaves(growing) >= LEAVES_BEFORE_THE_STOP)
    assert carrying(MARK)
    stopped = growing.http.post(f"/v1/runs/{trunk}/stop", json={"reason": "enough"})
    assert stopped.status_code == 200, stopped.text
    # It was stopped in the middle: they would have been more.
    assert leaves(growing) < BRANCHES * CHILDREN_MAX

    def over() -> list[dict[str, Any]]:
        runs = tree(growing)
        left = [run for run in runs if run["stage"] not in ("announced", "archived", "refused")]
        return runs if not left else []

    runs = wait_for("everybody to be over", over)
    assert {run["depth"] for run in runs} == {1, 2, 3}
    for run in runs:
        if run["stage"] != "refused":
            assert run["outcome"] == "stopped", run
            assert run["announcement"]["state"] in ("delivered", "skipped"), run
    wait_for("their processes to be gone", lambda: not carrying(MARK))
    for run in runs:
        if run["childSessionKey"] is not None:
            session = growing.http.get(f"/v1/sessions/{run['childSessionKey']}").json()
            assert (session["activeChildren"], session["pendingDescendants"]) == (0, 0)
    session = growing.http.get(f"/v1/sessions/{ROOT_KEY}").json()
    assert (session["activeChildren"], session["pendingDescendants"]) == (0, 0)
    for lane in growing.http.get("/v1/lanes").json()["items"]:
        assert (lane["running"], lane["queued"]) == (0, 0), lane

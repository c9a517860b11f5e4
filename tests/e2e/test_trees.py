"""Runs that are stopped, children of children, and a tree that is stopped while it grows."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.support.servers.child_programs import ASK
from tests.support.servers.configurations import agent, configuration, python
from tests.support.servers.databases import Databases
from tests.support.servers.process_table import carrying, is_alive
from tests.support.servers.server import Server, serving
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

ROOT = "agent:main:tree"
GROWING = "agent:main:growing"
MARK = "spawnlog-growing-tree"
BRANCHES, LEAVES, WIDTH = 4, 20, 4
LEAVES_BEFORE_THE_STOP = 6


def test_stopped_run_is_killed_and_its_requester_is_told(server: Server) -> None:
    run_id = server.accepted("waiter", session="agent:main:stopped", cleanup="delete")
    pid = int(server.began(run_id))
    assert server.stop_run(run_id, reason="enough") == {"runId": run_id, "wasOver": False}
    run = server.run(run_id, "archived")
    assert (run["status"], run["outcome"]) == ("stopped", "stopped")
    assert (run["stopRequestedBy"], run["stopReason"]) == ("admin", "enough")
    assert not is_alive(pid)
    events = server.events(run_id)
    assert events[-4:] == ["StopRequested", "RunEnded", "RunAnnounced", "RunArchived"]
    shown = server.http.get(f"/v1/runs/{run_id}/events").json()["items"]
    assert [event.get("texts") for event in shown[-4:]] == [{"reason": "enough"}, None, None, None]
    (entry,) = server.inbox("agent:main:stopped")
    assert entry["text"].startswith("Status: error\n")
    assert "Notes: stopped by admin: enough\n" in entry["text"]
    assert server.stop_run(run_id, reason="again")["wasOver"] is True
    assert server.events(run_id) == events


def test_stopped_preparation_is_refused_and_its_scripts_are_killed(server: Server) -> None:
    body = {"session": "agent:main:hasty", "agentId": "slow", "key": "hasty"}
    aside = server.spawn_in_background(**body)
    run_id = server.preparing("agent:main:hasty")
    script = int(server.note(f"slow.{run_id}"))
    assert is_alive(script)
    server.stop_run(run_id)
    answer = aside.answer()
    assert answer is not None
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["rule"]) == (422, "spawn_error", "stopped")
    wait_for("the script to be killed", lambda: not is_alive(script), seconds=5)
    assert server.events(run_id) == ["SpawnRequested", "SpawnRefused"]
    assert server.session("agent:main:hasty")["activeChildren"] == 0
    again = server.spawn(**body)
    assert (again.headers["Idempotent-Replayed"], again.json()) == ("true", problem)


# An orchestrator that has ended, and its child, which has not.


class Tree:
    """An orchestrator, the results of its own requests, and its child, which waits to be
    released.
    """

    def __init__(self, server: Server) -> None:
        self.foreign = server.accepted("plain", session="agent:main:foreign")
        task = f"get help; foreign run: {self.foreign}"
        self.parent = server.accepted("orchestrator", task, session=ROOT, cleanup="delete")
        left = json.loads(server.note(f"{self.parent}.json"))
        self.token: str = left["token"]
        self.said: dict[str, Any] = left["said"]
        self.child: str = self.said["spawnOfItsOwn"][1]["runId"]
        server.run(self.parent, "ended")


@pytest.fixture(scope="module")
def tree(server: Server) -> Tree:
    return Tree(server)


def test_orchestrator_is_announced_after_its_child(server: Server, tree: Tree) -> None:
    parent, child = server.run(tree.parent), server.run(tree.child, "started")
    assert (parent["role"], parent["depth"], parent["stage"]) == ("orchestrator", 1, "ended")
    assert (child["role"], child["depth"]) == ("leaf", 2)
    session = server.session(ROOT)
    assert (session["activeRuns"], session["pendingDescendants"]) == ([tree.parent], 2)
    server.let_go(tree.child)
    parent = server.run(tree.parent, "archived")
    assert server.session(ROOT)["activeChildren"] == 0
    (entry,) = server.inbox(ROOT)
    output, found, findings = entry["text"].partition("Findings of its sub-agents:")
    assert (entry["runId"], bool(found)) == (tree.parent, True)
    assert "I have asked for help" in output
    assert "1. helper\nStatus: success\n" in findings
    assert "let go" in findings
    # The child's own announcement went to the orchestrator.
    (below,) = server.inbox(parent["childSessionKey"])
    assert below["runId"] == tree.child
    log = server.http.get("/v1/events", params={"tree": ROOT, "limit": 500}).json()["items"]
    order = [
        (tree.parent, "RunEnded"),
        (tree.child, "RunAnnounced"),
        (tree.parent, "DescendantsSettled"),
        (tree.parent, "RunAnnounced"),
        (tree.parent, "RunArchived"),
    ]
    assert [found for event in log if (found := (event["runId"], event["type"])) in order] == order


def test_token_of_child_is_for_its_session_and_its_life(server: Server, tree: Tree) -> None:
    answers = {name: (status, body.get("code")) for name, (status, body) in tree.said.items()}
    assert answers == {
        "spawnOfItsOwn": (201, None),
        "spawnForAnother": (403, "not_permitted"),
        "itself": (200, None),
        "another": (404, "not_found"),
        "stopOfAnother": (404, "not_found"),
        "inboxOfAnother": (403, "not_permitted"),
    }
    assert server.run(tree.foreign, "announced")["outcome"] == "success"

    def refused() -> httpx2.Response | None:
        headers = {"Authorization": f"Bearer {tree.token}"}
        answer = httpx2.get(f"{server.url}/v1/runs/{tree.parent}", headers=headers)
        return answer if answer.status_code == 401 else None

    assert wait_for("the token to die", refused).json()["code"] == "unauthorized"
    log = server.http.get("/v1/events", params={"limit": 500}).text
    run = server.http.get(f"/v1/runs/{tree.parent}").text
    assert tree.token not in log + run + server.log()


# A tree that grows.

_SPAWNER = (
    ASK
    + """
import os, sys, time
key = os.environ["SPAWNLOG_SESSION_KEY"]
body = {"requester": {"sessionKey": key}, "task": "grow", "agentId": sys.argv[2]}
for _ in range(int(sys.argv[3])):
    ask("POST", "/v1/spawns", body)
time.sleep(600)
"""
)


@pytest.fixture
def growing(databases: Databases) -> Iterator[Server]:
    def program(agent_id: str, child: str, count: int) -> dict[str, Any]:
        return agent(agent_id, python(_SPAWNER, MARK, child, count))

    config = configuration(
        agent("main", default=True),
        program("trunk", "branch", BRANCHES),
        program("branch", "leaf", LEAVES),
        program("leaf", "", 0),
        maxSpawnDepth=3,
        maxConcurrent=WIDTH,
        maxChildrenPerAgent=LEAVES,
        leaseSeconds=10,
    )
    with serving(databases, config) as server:
        yield server
        assert " ERROR " not in server.log(), server.log()


def test_stop_in_the_middle_of_growth_ends_whole_tree(growing: Server) -> None:
    def tree() -> list[dict[str, Any]]:
        return growing.runs(tree=GROWING, limit=500)

    def leaves() -> int:
        return sum(run["agentId"] == "leaf" for run in tree())

    def over() -> list[dict[str, Any]]:
        runs = tree()
        ends = ("announced", "archived", "refused")
        return runs if all(run["stage"] in ends for run in runs) else []

    trunk = growing.accepted("trunk", "grow", session=GROWING)
    wait_for("the tree to grow", lambda: leaves() >= LEAVES_BEFORE_THE_STOP)
    assert carrying(MARK)
    growing.stop_run(trunk, reason="enough")
    # The tree was stopped before all its leaves were spawned.
    assert leaves() < BRANCHES * LEAVES
    runs = wait_for("everybody to be over", over)
    assert {run["depth"] for run in runs} == {1, 2, 3}
    for run in runs:
        if run["stage"] != "refused":
            assert run["outcome"] == "stopped", run
            assert run["announcement"]["state"] in ("delivered", "skipped"), run
    wait_for("their processes to be gone", lambda: not carrying(MARK))
    for key in {GROWING, *(run["childSessionKey"] for run in runs if run["childSessionKey"])}:
        session = growing.session(key)
        assert (session["activeChildren"], session["pendingDescendants"]) == (0, 0)
    for lane in growing.http.get("/v1/lanes").json()["items"]:
        assert (lane["running"], lane["queued"]) == (0, 0), lane

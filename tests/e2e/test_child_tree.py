"""A child that has a child: told when both are done, and no more powerful than it should be."""

import json
from typing import Any

import httpx2
import pytest

from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

ROOT = "agent:main:tree"


class Tree:
    """An orchestrator that has ended, and its child, which has not."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.foreign = server.accepted("plain", session="agent:main:foreign")
        task = f"get help; foreign run: {self.foreign}"
        self.parent = server.accepted("orchestrator", task, session=ROOT, cleanup="delete")
        left = json.loads(server.note(f"{self.parent}.json"))
        self.token: str = left["token"]
        self.said: dict[str, Any] = left["said"]
        self.child: str = self.said["spawnOfItsOwn"][1]["runId"]

    def as_parent(self, path: str) -> httpx2.Response:
        """A question asked with the parent's token."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx2.get(self.server.url + path, headers=headers)


@pytest.fixture(scope="module")
def tree(server: Server) -> Tree:
    return Tree(server)


def test_an_orchestrator_is_announced_after_its_child_and_holds_its_place_so_long(
    tree: Tree,
) -> None:
    server = tree.server
    parent = server.run(tree.parent, "ended")
    child = server.run(tree.child, "started")
    assert (parent["role"], parent["depth"]) == ("orchestrator", 1)
    assert (child["role"], child["depth"]) == ("leaf", 2)
    assert (parent["stage"], parent["outcome"]) == ("ended", "success")
    session = server.session(ROOT)
    assert (session["activeChildren"], session["activeRuns"]) == (1, [tree.parent])
    assert session["pendingDescendants"] == 2
    server.let_go(tree.child)
    parent = server.run(tree.parent, "archived")
    assert parent["outcome"] == "success"
    assert server.session(ROOT)["activeChildren"] == 0
    log = server.http.get("/v1/events", params={"tree": ROOT, "limit": 500}).json()["items"]
    places = {(one["runId"], one["type"]): one["position"] for one in log}
    released = [
        one["position"]
        for one in log
        if one["type"] == "ChildReleased" and one["stream"] == f"session:{ROOT}"
    ]
    settled = places[tree.parent, "DescendantsSettled"]
    assert places[tree.parent, "RunEnded"] < places[tree.child, "RunAnnounced"] < settled
    assert settled < places[tree.parent, "RunAnnounced"] < places[tree.parent, "RunArchived"]
    assert len(released) == 1
    assert places[tree.child, "RunAnnounced"] < released[0] < places[tree.parent, "RunAnnounced"]


def test_the_findings_of_the_child_come_with_the_announcement(tree: Tree) -> None:
    server = tree.server
    server.let_go(tree.child)
    parent = server.run(tree.parent, "announced")
    (entry,) = server.inbox(ROOT)
    text = entry["text"]
    assert entry["runId"] == tree.parent
    assert text.index("I have asked for help") < text.index("Findings of its sub-agents:")
    assert "1. helper\nStatus: success\n" in text
    assert "let go" in text.partition("Findings of its sub-agents:")[2]
    # The child's own announcement went to the orchestrator.
    (below,) = server.inbox(parent["childSessionKey"])
    assert below["runId"] == tree.child


def test_the_token_of_a_child_acts_for_its_own_session_alone(tree: Tree) -> None:
    said = tree.said
    assert said["spawnOfItsOwn"][0] == 201
    assert (said["spawnForAnother"][0], said["spawnForAnother"][1]["code"]) == (
        403,
        "not_permitted",
    )
    assert said["itself"][0] == 200
    assert said["itself"][1]["runId"] == tree.parent
    assert (said["another"][0], said["another"][1]["code"]) == (404, "not_found")
    assert (said["stopOfAnother"][0], said["stopOfAnother"][1]["code"]) == (404, "not_found")
    assert said["inboxOfAnother"][0] == 403
    assert tree.server.run(tree.foreign, "announced")["outcome"] == "success"


def test_the_token_of_a_child_dies_with_its_run(tree: Tree) -> None:
    tree.server.run(tree.parent, "ended")
    answer = wait_for(
        "the token to die",
        lambda: (found := tree.as_parent(f"/v1/runs/{tree.parent}")).status_code == 401 and found,
    )
    assert answer.json()["code"] == "unauthorized"


def test_a_token_is_on_no_record(tree: Tree) -> None:
    server = tree.server
    log = server.http.get("/v1/events", params={"limit": 500}).text
    run = server.http.get(f"/v1/runs/{tree.parent}").text
    assert tree.token not in log + run + server.log()


def test_stopping_an_orchestrator_stops_what_is_below_it(server: Server) -> None:
    tree = Tree(server)
    server.note(f"{tree.child}.began")
    server.run(tree.parent, "ended")  # What it left behind was written before its process ended.
    answer = server.http.post(f"/v1/runs/{tree.parent}/stop", json={})
    assert answer.status_code == 200
    child = server.run(tree.child, "announced")
    assert child["outcome"] == "stopped"
    assert server.run(tree.parent, "archived")["outcome"] == "success"
    assert server.session(ROOT)["activeChildren"] == 0

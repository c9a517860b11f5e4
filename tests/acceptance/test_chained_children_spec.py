"""Children that are spawned one after another, all asked for before the first of them is done: each
one is a real process that answers from what those before it said."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.answering_children import answerer, recorded, said, spawned
from tests.support.servers.server import Serve, Server

pytestmark = pytest.mark.server

CHAINS: list[dict[str, Any]] = [
    {"chainAfter": "first"},
    {"dependsOn": ["first"]},
    {"chainAfter": {"run": "first", "require": "ended"}},
    {},
]
BY = ["chainAfter", "dependsOn", "chainAfter-ended", "the-reference-alone"]


@pytest.fixture(scope="module")
def server(serve: Serve, gates: Path) -> Server:
    return serve({**answerer("main"), "default": True}, answerer("gated", gates), maxConcurrent=8)


@pytest.mark.parametrize("chain", CHAINS, ids=BY)
def test_a_later_subagent_answers_from_the_result_of_an_earlier_one(
    server: Server, gates: Path, chain: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.id.lower()
    first = spawned(server, name, f"Look at {name}", agentId="gated", label="first")
    shared = {"$first": "reference"}
    later = spawned(server, name, "Go on", sharedContext=shared, **chain)
    assert server.run(later["runId"])["status"] == "waiting"
    (gates / f"go.Look-at-{name}").touch()
    assert said(server, first) == f"Look at {name}"
    assert said(server, later) == f"Go on; first is [Look at {name}]"
    over = recorded(server, first, "RunEnded")["position"]
    assert (
        over
        < recorded(server, later, "RunQueued")["position"]
        < recorded(server, later, "RunStarted")["position"]
    )


def test_a_chain_hands_on_what_was_said_from_one_to_the_next(server: Server, gates: Path) -> None:
    chain = [spawned(server, "long", "Begin slowly", agentId="gated", label="link-0")]
    for number in (1, 2, 3):
        before = f"link-{number - 1}"
        more: dict[str, Any] = {
            "label": f"link-{number}",
            "chainAfter": before,
            "sharedContext": {f"${before}": "reference"},
            "sharedContextScope": "child",
        }
        chain.append(spawned(server, "long", f"Step {number}", **more))
    (gates / "go.Begin-slowly").touch()
    expected = "Begin slowly"
    assert said(server, chain[0]) == expected
    for number in (1, 2, 3):
        expected = f"Step {number}; link-{number - 1} is [{expected}]"
        assert said(server, chain[number]) == expected


def test_one_that_is_chained_has_what_those_before_it_brought_the_family(
    server: Server, gates: Path
) -> None:
    goal = {"projectGoal": "a harbour"}
    session = "brought"
    first = spawned(
        server, session, "Find a place", agentId="gated", label="first", sharedContext=goal
    )
    later = spawned(server, session, "Go on", chainAfter="first")
    patched = server.http.patch(
        f"/v1/sessions/agent:main:{session}/shared-context",
        json={"projectGoal": "a lighthouse"},
        headers={"If-Match": "*"},
    )
    assert patched.status_code == 200, patched.text
    (gates / "go.Find-a-place").touch()
    assert said(server, later) == "Go on; projectGoal is [a lighthouse]", "as it was when it began"
    claimed = recorded(server, later, "RunClaimed")["position"]
    assert recorded(server, later, "RunStarted")["payload"]["sharedContextPosition"] == claimed
    assert said(server, first) == "Find a place; projectGoal is [a harbour]"

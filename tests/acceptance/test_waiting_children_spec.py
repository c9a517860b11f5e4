"""Children that wait for any earlier run of their tree, and hold up nobody while they do."""

from pathlib import Path

import pytest

from tests.support.servers.answering_children import answerer, said, spawned
from tests.support.servers.server import Serve, Server

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def server(serve: Serve, gates: Path) -> Server:
    """One run of a depth at a time, and two children of a session."""
    return serve(
        {**answerer("main"), "default": True},
        answerer("gated", gates),
        maxSpawnDepth=2,
        maxConcurrent=1,
        maxChildrenPerAgent=3,
    )


@pytest.mark.parametrize("by", ["label", "run id"])
def test_one_that_waits_for_a_run_below_a_sibling_has_no_slot_and_has_a_place(
    server: Server, gates: Path, by: str
) -> None:
    name = f"Sibling by {by}"
    session = f"agent:main:{by.replace(' ', '-')}"
    sibling = spawned(server, session, name, agentId="gated", label="sibling")
    server.run(sibling["runId"], "started")
    below = spawned(
        server, sibling["childSessionKey"], f"Below {name}", agentId="gated", label="below"
    )
    (gates / f"go.{name.replace(' ', '-')}").touch()
    server.run(sibling["runId"], "ended")

    name_of_it = "below" if by == "label" else below["runId"]
    waits = spawned(server, session, "Wait for it", dependsOn=[name_of_it])
    shown = server.run(waits["runId"])
    assert shown["status"] == "waiting"
    (on,) = shown["dependsOn"]
    assert (on["runId"], on["name"], on["state"]) == (below["runId"], name_of_it, "waiting")

    # The one slot of this depth is free; of the three places the sibling and it have two.
    assert said(server, spawned(server, session, "Go ahead")) == "Go ahead"
    third = spawned(server, session, "Wait as well", chainAfter="sibling")
    refused = server.spawn("No room", requester={"sessionKey": session})
    assert refused.json()["rule"] == "active_children"

    (gates / f"go.Below-{name.replace(' ', '-')}").touch()
    assert said(server, waits) == "Wait for it"
    assert said(server, third) == "Wait as well"
    assert server.http.get(f"/v1/sessions/{session}").json()["activeChildren"] == 0

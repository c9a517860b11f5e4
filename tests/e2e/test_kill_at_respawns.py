"""kill -9 of the server while a spawn is made from an earlier run: whoever goes on uses what was
recorded, asks no script and takes over the same entries."""

import contextlib
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.mortal_server import Mortal, mortal_on
from tests.support.servers.respawning_server import respawn
from tests.support.servers.running_server import wait_for
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.kill

MOMENTS = (
    "after SpawnRequested",
    "before ScriptsResolved",
    "after ScriptsResolved",
    "before step:context_fork",
    "after step:context_fork",
    "after SessionCreated",
)


def body_at(moment: str) -> dict[str, Any]:
    """A respawn whose label says when its server dies."""
    changes = {"task": "once more", "cleanup": "delete", "label": moment}
    return {"scripts": "recorded", "transcript": {"upTo": 1}, "changes": changes}


@pytest.fixture(scope="module")
def server(databases: Databases) -> Iterator[Mortal]:
    """Its log is verified once all is over."""
    with mortal_on(databases, Mortal) as mortal:
        yield mortal


@pytest.fixture(scope="module")
def earlier(server: Mortal) -> dict[str, Any]:
    """A run to which a context script gave another agent; the script is no more."""
    run = server.run(server.accepted("steward", "at first"), "announced")
    assert run["agentId"] == "echo"
    (server.folder / "identity.sh").unlink()
    return run


@pytest.mark.parametrize("moment", nightly_but(MOMENTS, ["after ScriptsResolved"]))
def test_it_goes_on_with_what_was_recorded(
    server: Mortal, earlier: dict[str, Any], moment: str
) -> None:
    server.alive()
    body = body_at(moment)
    server.is_to_die(moment)
    with contextlib.suppress(httpx2.TransportError):
        respawn(server, earlier["runId"], key=moment, **body)
    server.has_died()
    server.again()

    def answer() -> httpx2.Response | None:
        found = respawn(server, earlier["runId"], key=moment, **body)
        return found if found.status_code != 409 else None

    accepted = wait_for("an answer to the same request", answer)
    assert accepted.status_code == 201, accepted.text
    run = server.run(accepted.json()["runId"], "archived")
    assert (run["outcome"], run["agentId"], run["contextMode"]) == ("success", "echo", "fork")
    assert run["respawnedFrom"] == earlier["runId"]
    events = server.http.get(f"/v1/runs/{run['runId']}/events").json()["items"]
    (resolved,) = [one["payload"] for one in events if one["type"] == "ScriptsResolved"]
    assert [one["reusedFrom"] for one in resolved["receipts"]] == [earlier["runId"]]
    assert [one["outcome"] for one in resolved["receipts"]] == ["injected"]
    entries = server.http.get(f"/v1/runs/{run['runId']}/transcript").json()["items"]
    assert entries[0]["body"]["respawnedFrom"] == earlier["runId"]
    assert entries[1]["body"]["text"].endswith("at first")
    assert "once more" in entries[2]["body"]["text"]
    assert server.run(earlier["runId"])["respawns"].count(run["runId"]) == 1
    query = {"respawnedFrom": earlier["runId"], "label": moment}
    (only,) = server.http.get("/v1/runs", params=query).json()["items"]
    assert only["runId"] == run["runId"]


@pytest.mark.parametrize(
    ("body", "rule"),
    [({"scripts": "recorded"}, "erased"), ({"transcript": {"upTo": 1}}, "context_fork")],
)
def test_what_is_erased_meanwhile_is_not_used_again(
    server: Mortal, body: dict[str, Any], rule: str
) -> None:
    server.alive()
    earlier = server.run(server.accepted("bare", "at first"), "announced")
    if rule == "erased":
        # One that has a context script; it fails, which is on record too.
        earlier = server.run(server.accepted("plain", "at first"), "announced")
    server.is_to_die("after SpawnRequested")
    with contextlib.suppress(httpx2.TransportError):
        respawn(server, earlier["runId"], key=rule, **body)
    server.has_died()
    server.erase_session(earlier["sessionId"])
    server.again()
    query = {"respawnedFrom": earlier["runId"], "stage": "refused"}
    (refused,) = wait_for(
        "the refusal", lambda: server.http.get("/v1/runs", params=query).json()["items"]
    )
    assert refused["rule"] == rule
    assert earlier["runId"] in refused["error"]
    why = server.http.get(f"/v1/runs/{refused['runId']}/explain").json()
    assert [one["rule"] for one in why["decisions"] if one["result"] == "refused"] == [rule]

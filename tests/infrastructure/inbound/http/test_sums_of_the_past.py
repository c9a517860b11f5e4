"""Sums that were right when somebody looked are the same as of that moment, whatever came later."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.narrators import narrate, narrating
from tests.support.servers.server import Server, serving
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server
ROOT = "agent:main:main"
PARTS = {
    "/v1/runs": ("totals",),
    f"/v1/sessions/{ROOT}/tree": ("runningNotSummed", "root"),
    "/v1/summary": ("live", "spawned", "ended"),
    "/v1/trees/usage": ("items",),
}
QUERIES: dict[str, dict[str, Any]] = {
    "/v1/runs": {"totals": True},
    "/v1/summary": {"from": "pos:0"},
    "/v1/trees/usage": {"tree": ROOT},
}
TOKENS_OF_NOW = 1_000


@pytest.fixture(scope="module")
def server(databases: Databases) -> Iterator[Server]:
    """Yield a server whose children say what a test tells them."""
    with serving(databases, narrating) as running:
        yield running


def _used(tokens: int) -> dict[str, Any]:
    usage = {"type": "usage", "inputTokens": tokens, "outputTokens": 5, "model": "acme/big"}
    return {"say": usage}


def _sums(server: Server, run_id: str, at: int | None = None) -> dict[str, Any]:
    """Return what each answer says of tokens and cost, now or as of a position."""
    found: dict[str, Any] = {}
    for path, members in PARTS.items():
        moment = {} if at is None else {"to" if path == "/v1/summary" else "at": f"pos:{at}"}
        answer = server.get(path, **QUERIES.get(path, {}), **moment)
        found[path] = {name: answer[name] for name in members}
    moment = {} if at is None else {"at": f"pos:{at}"}
    found["run"] = server.get(f"/v1/runs/{run_id}", **moment)["usage"]
    return found


def test_sums_of_a_moment_are_those_that_were_seen_then(server: Server) -> None:
    run_id = narrate(
        server,
        _used(TOKENS_OF_NOW),
        {"note": "first", "await": "more"},
        _used(500),
        {"note": "second", "await": "end"},
        label="at work",
    )
    server.note("first")
    path = f"/v1/runs/{run_id}"
    wait_for("tokens so far", lambda: (server.get(path)["usage"] or {}).get("inputTokens"))
    over = narrate(server, _used(40), label="over")
    server.run(over, "announced")
    then = server.head()
    seen = _sums(server, run_id)
    assert server.head() == then
    assert seen["run"]["inputTokens"] == TOKENS_OF_NOW
    assert seen["/v1/runs"]["totals"]["inputTokens"] == TOKENS_OF_NOW + 40
    assert seen["/v1/runs"]["totals"]["runningNotSummed"] == 0
    assert _sums(server, run_id, then) == seen
    server.touch("more")
    server.note("second")
    assert _sums(server, run_id, then) == seen
    server.touch("end")
    server.run(run_id, "ended")
    assert _sums(server, run_id, then) == seen
    assert _sums(server, run_id)["/v1/runs"]["totals"]["inputTokens"] == TOKENS_OF_NOW + 540

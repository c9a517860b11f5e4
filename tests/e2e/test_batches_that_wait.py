"""A batch that depends on earlier runs: each of its runs waits, and one that failed is for all."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.builders.batch_requests import living
from tests.support.servers.batching_server import Batching
from tests.support.servers.databases import Databases

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def server(databases: Databases) -> Iterator[Batching]:
    """A server that lives."""
    with living(databases) as server:
        yield server


def first_of(server: Batching, main: str) -> tuple[str, Any]:
    """A batch of one that is held while it is prepared, and who waits for its answer."""
    aside = server.spawned_aside(
        task=["first"], parallel=True, agentId="fussy", label="held", requester={"sessionKey": main}
    )
    (run,) = server.are_at_work(main, 1)
    return str(run["runId"]), aside


def test_all_of_a_batch_wait_and_are_queued_when_it_is_done(server: Batching) -> None:
    main = "agent:main:chained"
    first, aside = first_of(server, main)
    answer = server.batch(
        "a", "b", session=main, agentId="plain", label="then", chainAfter="held-1"
    )
    assert answer.status_code == 201, answer.text
    ids = [one["runId"] for one in answer.json()["runs"]]
    for run_id in ids:
        waiting = server.run(run_id)
        assert waiting["status"] == "waiting"
        assert [one["runId"] for one in waiting["dependsOn"]] == [first]
    _, created, *_ = server.appends(*ids)
    assert Counter(created)["SessionCreated"] == Counter(created)["RunWaits"] == 2
    assert "RunQueued" not in created
    server.let_go(first)
    assert aside.answer().status_code == 201
    for run_id in ids:
        assert server.run(run_id, "announced")["outcome"] == "success"
    assert server.places(main) == 0


def test_what_a_batch_waits_for_fails_while_it_is_prepared(server: Batching) -> None:
    main = "agent:main:in-vain"
    first, aside = first_of(server, main)
    later = server.spawned_aside(
        task=["a", "b"],
        parallel=True,
        agentId="fussy",
        label="held-too",
        dependsOn=[first],
        requester={"sessionKey": main},
    )
    second, third = server.are_at_work(main, 3)[1:]
    server.http.post(f"/v1/runs/{first}/stop", json={})
    assert aside.answer().json()["rule"] == "stopped"
    for one in (second, third):
        server.let_go(one["runId"])
    answer = later.answer()
    assert answer is not None
    problem = answer.json()
    assert problem["rule"] == "dependency_failed"
    refused = [server.run(one["runId"]) for one in (second, third)]
    assert Counter(one["rule"] for one in refused) == {"dependency_failed": 1, "batch": 1}
    assert server.places(main) == 0


def test_a_batch_that_names_nobody_is_refused_as_a_whole(server: Batching) -> None:
    main = "agent:main:nobody"
    problem = server.batch("a", "b", session=main, agentId="plain", dependsOn=["ghost"]).json()
    assert problem["rule"] == "dependency_unknown"
    assert [one["rule"] for one in server.runs_of(main)] == ["dependency_unknown"] * 2


def test_what_earlier_runs_found_is_given_to_all(server: Batching) -> None:
    main = "agent:main:given"
    found = server.accepted("plain", label="research", requester={"sessionKey": main})
    server.run(found, "announced")
    shared = {"$research": "reference"}
    answer = server.batch("a", "b", session=main, agentId="plain", sharedContext=shared)
    assert answer.status_code == 201, answer.text
    for one in answer.json()["runs"]:
        server.run(one["runId"], "announced")
        own = server.http.get(f"/v1/runs/{one['runId']}/shared-context").json()
        assert own["values"] == {"research": "done"}

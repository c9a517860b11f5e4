"""What a child may do with the token it was started with."""

from collections.abc import Iterator

import pytest

from tests.support.http.problems import problem_of
from tests.support.http.requests import spawn_body
from tests.support.servers.http_server import HeldRun, House

pytestmark = pytest.mark.server


@pytest.fixture
def child(house: House) -> Iterator[HeldRun]:
    """A run that stands at its gate, and its child's own token."""
    with house.held(house.session("parent"), label="child") as run:
        yield run


def test_a_child_reads_its_own_run_and_its_texts(house: House, child: HeldRun) -> None:
    with house.with_token(child.token) as client:
        run = client.get(f"/v1/runs/{child.run_id}").json()
        assert run["task"] == "hello"
        assert client.get(f"/v1/runs/{child.run_id}/prompt").status_code == 200
        assert client.get(f"/v1/runs/{child.run_id}/events").json()["items"]
        events = client.get("/v1/events", params={"runId": child.run_id})
        assert events.json()["items"]
        problem_of(client.get("/v1/events"), 403, "not_permitted")
        assert [one["runId"] for one in client.get("/v1/runs").json()["items"]] == [child.run_id]


def test_a_child_learns_whose_token_it_has(house: House, child: HeldRun) -> None:
    with house.with_token(child.token) as client:
        told = client.get("/v1/me").json()
    assert child.token not in str(told)
    assert (told["kind"], told["runId"], told["session"]) == ("child", child.run_id, child.child)
    assert told["patterns"] == [child.child]
    assert {"read", "content", "spawn"} <= set(told["scopes"])
    assert "admin" not in told["scopes"]


def test_a_child_spawns_for_its_own_session_and_no_other(house: House, child: HeldRun) -> None:
    parent = str(house.server.run(child.run_id)["requesterSessionKey"])
    with house.with_token(child.token) as client:
        for session in (parent, "main", house.session()):
            answer = client.post("/v1/spawns", json=spawn_body(session))
            problem_of(answer, 403, "not_permitted")
        answer = client.post("/v1/spawns", json={**spawn_body(child.child), "agentId": "main"})
        assert answer.status_code == 201, answer.text
        run_id = answer.json()["runId"]
        run = client.get(f"/v1/runs/{run_id}?wait=10s&until=announced").json()
        assert run["depth"] == 2
        assert run["resultText"] == "done"
        (told,) = client.get(f"/v1/sessions/{child.child}/announcements").json()["items"]
        assert told["runId"] == run_id
        ack = f"/v1/sessions/{child.child}/announcements/{run_id}/ack"
        assert client.post(ack).status_code == 200
    assert len(house.runs(parent)) == 1


def test_a_child_stops_those_below_it_but_not_itself(house: House, child: HeldRun) -> None:
    with house.with_token(child.token) as client:
        problem_of(client.post(f"/v1/runs/{child.run_id}/stop"), 403, "not_permitted")
        below = client.post(
            "/v1/spawns", json={**spawn_body(child.child), "agentId": "slow"}
        ).json()
        assert client.post(f"/v1/runs/{below['runId']}/stop").status_code == 200
        run = client.get(f"/v1/runs/{below['runId']}?wait=10s&until=ended").json()
        assert run["outcome"] == "stopped"


def test_a_leaf_may_not_spawn_and_its_spawn_is_on_record(house: House, child: HeldRun) -> None:
    with house.held(child.child, label="leaf") as leaf:
        with house.with_token(leaf.token) as client:
            answer = client.post("/v1/spawns", json=spawn_body(leaf.child))
            refused = problem_of(answer, 403, "spawn_forbidden")
            assert refused["rule"] == "depth"
            assert refused["detail"] == (
                "sessions_spawn is not allowed at this depth (current depth: 2, max: 2)"
            )
    events = house.http.get(f"/v1/runs/{refused['runId']}/events").json()["items"]
    assert [one["type"] for one in events] == ["SpawnRequested", "SpawnRefused"]


def test_a_childs_token_dies_with_its_run(house: House) -> None:
    with house.held(house.session("parent")) as run:
        with house.with_token(run.token) as client:
            assert client.get(f"/v1/runs/{run.run_id}").status_code == 200
    with house.with_token(run.token) as client:
        problem_of(client.get(f"/v1/runs/{run.run_id}"), 401, "unauthorized")


def test_a_childs_token_cannot_be_changed_into_anothers(house: House, child: HeldRun) -> None:
    for place in (5, 20, len(child.token) - 6):
        other = "A" if child.token[place] != "A" else "B"
        changed = child.token[:place] + other + child.token[place + 1 :]
        with house.with_token(changed) as client:
            problem_of(client.get("/v1/runs"), 401, "unauthorized")

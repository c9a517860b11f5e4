"""Permissions of the administrator, configured tokens, children, and callers without a token."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.support.http.problems import problem_of
from tests.support.http.requests import pages_of_events, spawn_body
from tests.support.http.wire import client_of, exchange, head
from tests.support.servers.http_server import ONE
from tests.support.servers.server import HeldRun, Server

pytestmark = pytest.mark.server


@pytest.fixture
def child(server: Server) -> Iterator[HeldRun]:
    """Yield a waiting run with its child's own token."""
    with server.held(server.new_session("parent"), label="child") as run:
        yield run


def me(server: Server, token: str) -> dict[str, Any]:
    with server.with_token(token) as client:
        answer = client.get("/v1/me")
    assert answer.status_code == 200, answer.text
    assert token not in answer.text
    assert int(answer.headers["spawnlog-position"]) > 0
    return dict(answer.json())


def test_token_learns_what_it_is_good_for(server: Server, child: HeldRun) -> None:
    assert me(server, server.secrets["reader"]) == {
        "kind": "token",
        "token": "reader",
        "session": None,
        "runId": None,
        "scopes": ["read"],
        "patterns": ["agent:main:reader-*"],
    }
    everything = me(server, server.secrets["everything"])
    assert (everything["scopes"], everything["patterns"]) == (["admin"], ["*"])
    identity = me(server, server.secrets["one"])
    assert (identity["scopes"], identity["session"]) == (["spawn", "read"], ONE)
    assert identity["patterns"] == [ONE]
    own = me(server, child.token)
    assert (own["kind"], own["runId"], own["session"]) == ("child", child.run_id, child.child)
    assert own["patterns"] == [child.child]
    assert {"read", "content", "spawn"} <= set(own["scopes"])
    assert "admin" not in own["scopes"]


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer",
        "Bearer ",
        "Basic {token}",
        "{token}",
        "Bearer x{token}",
        "Bearer {token}x",
        "Bearer slc_",
        "Bearer slc_AAAA",
        "Bearer slc_\u00e9\u00e9",
        "Bearer slc_" + "A" * 60,
        "Bearer " + "x" * 10_000,
    ],
)
def test_wrong_token_is_unauthorized(server: Server, authorization: str) -> None:
    sent = authorization.format(token=server.token)
    request = head("GET", "/v1/runs", {"Host": "127.0.0.1", "Authorization": sent})
    problem_of(exchange(server.url, request), 401, "unauthorized")


def test_scheme_is_taken_in_every_spelling(server: Server) -> None:
    sent = f"bearer   {server.token}"
    request = head("GET", "/v1/runs", {"Host": "127.0.0.1", "Authorization": sent})
    assert exchange(server.url, request).status_code == 200


def test_token_in_url_or_cookie_is_none(server: Server) -> None:
    token = server.token
    with client_of(server.url) as client:
        for name in ("token", "access_token", "authorization", "bearer"):
            answer = client.get("/v1/runs", params={name: token})
            problem_of(answer, 401, "unauthorized")
            assert token not in answer.text
        headers = {"Cookie": f"token={token}; Authorization=Bearer {token}"}
        problem_of(client.get("/v1/runs", headers=headers), 401, "unauthorized")


def test_spawner_spawns_for_its_sessions_alone(server: Server) -> None:
    with server.with_token(server.secrets["spawner"]) as spawner:
        own = spawner.post("/v1/spawns", json=spawn_body(server.new_session("spawner")))
        assert own.status_code == 201
        for session in (server.new_session("stranger"), "main", "global", "agent:other:spawner-1"):
            answer = spawner.post("/v1/spawns", json=spawn_body(session))
            problem_of(answer, 403, "not_permitted")


def test_reader_sees_its_trees_alone(server: Server) -> None:
    run = server.announced(session=server.new_session("reader"), agentId="talker")
    with server.with_token(server.secrets["reader"]) as reader:
        runs = reader.get("/v1/runs", params={"limit": 500}).json()["items"]
        pages = [page.json()["items"] for page in pages_of_events(reader, limit=500)]
    events = [item for items in pages for item in items]
    for items, name in ((runs, "requesterSessionKey"), (events, "correlation")):
        assert run["runId"] in {item["runId"] for item in items}
        assert all(item[name].startswith("agent:main:reader-") for item in items)


def test_lanes_hide_runs_of_others(server: Server) -> None:
    with (
        server.held(server.new_session("stranger"), label="hidden"),
        server.held(server.new_session("reader"), label="shown") as own,
        server.with_token(server.secrets["reader"]) as reader,
    ):
        server.run(own.run_id, "started")
        lanes = reader.get("/v1/lanes").json()["items"]
        members = [run for lane in lanes for run in lane["running"]]
        assert len(members) >= 2
        assert {"shown"} == {run["label"] for run in members if run["label"]}
        assert {own.run_id} == {run["runId"] for run in members if run["runId"]}
        assert all(run["holder"] is None for run in members)
        every = [run for lane in server.get("/v1/lanes")["items"] for run in lane["running"]]
        assert {"hidden", "shown"} <= {run["label"] for run in every}
        assert all(run["holder"] for run in every)


def test_child_reads_its_own_run_and_texts(server: Server, child: HeldRun) -> None:
    with server.with_token(child.token) as client:
        assert client.get(f"/v1/runs/{child.run_id}").json()["task"] == "hello"
        events = client.get("/v1/events", params={"runId": child.run_id})
        assert events.json()["items"]
        problem_of(client.get("/v1/events"), 403, "not_permitted")
        assert [item["runId"] for item in client.get("/v1/runs").json()["items"]] == [child.run_id]
        agents = client.get("/v1/agents", params={"requester": "current"}).json()
        assert (agents["requester"], agents["agents"][0]["id"]) == ("holder", "holder")


def test_child_spawns_and_stops_below_itself_alone(server: Server, child: HeldRun) -> None:
    parent = str(server.run(child.run_id)["requesterSessionKey"])
    with server.with_token(child.token) as client:
        for session in (parent, "main", server.new_session()):
            answer = client.post("/v1/spawns", json=spawn_body(session))
            problem_of(answer, 403, "not_permitted")
        answer = client.post("/v1/spawns", json=spawn_body(child.child, agentId="main"))
        assert answer.status_code == 201, answer.text
        run_id = answer.json()["runId"]
        run = client.get(f"/v1/runs/{run_id}?wait=10s&until=announced").json()
        assert (run["depth"], run["resultText"]) == (2, "done")
        inbox = f"/v1/sessions/{child.child}/announcements"
        (item,) = client.get(inbox).json()["items"]
        assert item["runId"] == run_id
        assert client.post(f"{inbox}/{run_id}/ack").status_code == 200
        problem_of(client.post(f"/v1/runs/{child.run_id}/stop"), 403, "not_permitted")
        below = client.post("/v1/spawns", json=spawn_body(child.child, agentId="slow")).json()
        assert client.post(f"/v1/runs/{below['runId']}/stop").status_code == 200
        run = client.get(f"/v1/runs/{below['runId']}?wait=10s&until=ended").json()
        assert run["outcome"] == "stopped"
    assert len(server.runs(requester=parent)) == 1


def test_page_acts_as_the_token_that_asked(server: Server) -> None:
    made = server.http.post("/v1/page-codes").json()
    code = made["code"]
    assert made["pageBuilt"] is (server.http.get("/ui/").status_code == 200)
    first, again = (
        httpx2.post(f"{server.url}/v1/page-tokens", json={"code": code}) for _ in range(2)
    )
    assert (first.status_code, first.json()["expiresInSeconds"]) == (201, 12 * 3600)
    assert "spawnlog open" in problem_of(again, 401, "unauthorized")["detail"]
    token = str(first.json()["token"])
    with server.with_token(token) as page:
        assert page.get("/v1/me").json() == server.get("/v1/me")
        answer = page.post("/v1/spawns", json=spawn_body(server.new_session()))
        assert answer.status_code == 201
        problem_of(page.post("/v1/page-codes"), 403, "not_permitted")
        assert page.delete("/v1/page-tokens/current").json() == {"wasKnown": True}
        problem_of(page.get("/v1/me"), 401, "unauthorized")
    events = server.recorded(answer.json()["runId"])
    assert (events[0]["actor"]["kind"], events[0]["actor"]["token"]) == ("token", "admin")
    assert token not in str(events)
    assert server.http.delete("/v1/page-tokens/current").json() == {"wasKnown": False}

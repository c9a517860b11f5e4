"""Who may do what: the administrator, the tokens of the configuration, children, and nobody."""

from collections.abc import Iterator

import httpx2
import pytest

from tests.support.http.problems import problem_of
from tests.support.http.requests import pages_of_events, spawn_body
from tests.support.http.wire import client_of, exchange, head
from tests.support.servers.http_server import ONE, HeldRun, House

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def reader_run(house: House) -> dict[str, object]:
    """A run of a session that the tokens `reader`, `texts` and `controller` are for."""
    return house.ended(house.session("reader"), agentId="talker", task="a secret task")


@pytest.fixture
def as_token(house: House, request: pytest.FixtureRequest) -> Iterator[httpx2.Client]:
    """A client with the token named by the test."""
    with house.with_token(house.secrets[request.param]) as client:
        yield client


def test_a_token_learns_what_it_is_good_for(house: House) -> None:
    def told_to(name: str) -> dict[str, object]:
        with house.with_token(house.secrets[name]) as client:
            answer = client.get("/v1/me")
        assert answer.status_code == 200, answer.text
        assert house.secrets[name] not in answer.text
        assert int(answer.headers["spawnlog-position"]) > 0
        return dict(answer.json())

    reader = {"kind": "token", "token": "reader", "session": None, "runId": None}
    assert told_to("reader") == {
        **reader,
        "scopes": ["read"],
        "patterns": ["agent:main:reader-*"],
    }
    assert told_to("everything")["scopes"] == ["admin"]
    assert told_to("everything")["patterns"] == ["*"]
    one = told_to("one")
    assert (one["scopes"], one["session"]) == (["spawn", "read"], ONE)
    assert one["patterns"] == [ONE]


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer",
        "Bearer ",
        "Bearer wrong",
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
def test_a_wrong_token_is_no_token(house: House, authorization: str) -> None:
    sent = authorization.format(token=house.server.token)
    request = head("GET", "/v1/runs", {"Host": "127.0.0.1", "Authorization": sent})
    problem_of(exchange(house.server.url, request), 401, "unauthorized")


def test_the_scheme_is_taken_in_every_spelling(house: House) -> None:
    sent = f"bearer   {house.server.token}"
    request = head("GET", "/v1/runs", {"Host": "127.0.0.1", "Authorization": sent})
    assert exchange(house.server.url, request).status_code == 200


@pytest.mark.parametrize("name", ["token", "access_token", "authorization", "bearer"])
def test_a_token_in_a_url_is_no_token(house: House, name: str) -> None:
    with client_of(house.server.url) as client:
        answer = client.get("/v1/runs", params={name: house.server.token})
        problem_of(answer, 401, "unauthorized")
        assert house.server.token not in answer.text


def test_a_token_in_a_cookie_is_no_token(house: House) -> None:
    headers = {"Cookie": f"token={house.server.token}; Authorization=Bearer {house.server.token}"}
    with client_of(house.server.url) as client:
        problem_of(client.get("/v1/runs", headers=headers), 401, "unauthorized")


def test_a_token_of_the_configuration_with_admin_may_do_everything(house: House) -> None:
    with house.with_token(house.secrets["everything"]) as client:
        answer = client.post("/v1/spawns", json=spawn_body(house.session()))
        assert answer.status_code == 201
        run_id = answer.json()["runId"]
        run = client.get(f"/v1/runs/{run_id}?wait=10s&until=announced").json()
        assert run["resultText"] == "done"
        assert client.get("/v1/lanes").status_code == 200


@pytest.mark.parametrize("as_token", ["spawner"], indirect=True)
def test_one_that_may_spawn_spawns_for_its_sessions_alone(
    house: House, as_token: httpx2.Client
) -> None:
    assert as_token.post("/v1/spawns", json=spawn_body(house.session("spawner"))).status_code == 201
    for session in (house.session("stranger"), "main", "global", "agent:other:spawner-1"):
        answer = as_token.post("/v1/spawns", json=spawn_body(session))
        problem_of(answer, 403, "not_permitted")


@pytest.mark.parametrize("as_token", ["reader"], indirect=True)
def test_reader_lists_the_runs_of_its_trees(
    as_token: httpx2.Client, reader_run: dict[str, object]
) -> None:
    listed = as_token.get("/v1/runs", params={"limit": 500}).json()["items"]
    assert reader_run["runId"] in {run["runId"] for run in listed}
    assert all(run["requesterSessionKey"].startswith("agent:main:reader-") for run in listed)


@pytest.mark.parametrize("as_token", ["reader"], indirect=True)
def test_a_reader_sees_the_events_of_its_trees_alone(
    as_token: httpx2.Client, reader_run: dict[str, object]
) -> None:
    pages = pages_of_events(as_token, limit=500)
    items = [item for page in pages for item in page.json()["items"]]
    assert {item["runId"] for item in items} >= {reader_run["runId"]}
    assert all(item["correlation"].startswith("agent:main:reader-") for item in items)


@pytest.mark.parametrize("as_token", ["controller"], indirect=True)
def test_one_that_may_control_stops_runs_of_its_trees(
    house: House, as_token: httpx2.Client
) -> None:
    own = house.accepted(house.session("other"), agentId="slow")
    assert as_token.post(f"/v1/runs/{own['runId']}/stop").status_code == 200
    assert house.server.run(own["runId"], "ended")["outcome"] == "stopped"


@pytest.mark.parametrize("as_token", ["reader"], indirect=True)
def test_lanes_show_it_how_many_there_are_and_not_who(
    house: House, as_token: httpx2.Client
) -> None:
    with house.held(house.session("stranger"), label="hidden"):
        with house.held(house.session("reader"), label="shown") as own:
            house.server.run(own.run_id, "started")
            lanes = as_token.get("/v1/lanes").json()["items"]
            members = [run for lane in lanes for run in lane["running"]]
            assert len(members) >= 2
            assert {"shown"} == {run["label"] for run in members if run["label"]}
            assert {own.run_id} == {run["runId"] for run in members if run["runId"]}
            assert all(run["holder"] is None for run in members)
            every = house.get("/v1/lanes")["items"]
            seen = [run for lane in every for run in lane["running"]]
            assert {"hidden", "shown"} <= {run["label"] for run in seen}
            assert all(run["holder"] for run in seen)


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
    events = house.events(refused["runId"])
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


def page_token(house: House) -> str:
    """A token of the page."""
    code = house.http.post("/v1/page-codes").json()["code"]
    answer = httpx2.post(f"{house.server.url}/v1/page-tokens", json={"code": code})
    assert answer.status_code == 201
    assert answer.json()["expiresInSeconds"] == 12 * 3600
    again = httpx2.post(f"{house.server.url}/v1/page-tokens", json={"code": code})
    assert "spawnlog open" in problem_of(again, 401, "unauthorized")["detail"]
    return str(answer.json()["token"])


def test_what_is_done_by_the_page_is_on_record_as_done_by_the_token_that_asked(
    house: House,
) -> None:
    token, session = page_token(house), house.session()
    with house.with_token(token) as page:
        assert page.get("/v1/me").json() == house.get("/v1/me")
        body = {"requester": {"sessionKey": session}, "task": "by the page", "agentId": "main"}
        answer = page.post("/v1/spawns", json=body)
        assert answer.status_code == 201
        problem_of(page.post("/v1/page-codes"), 403, "not_permitted")
        assert page.delete("/v1/page-tokens/current").json() == {"wasKnown": True}
        problem_of(page.get("/v1/me"), 401, "unauthorized")
    events = house.http.get("/v1/events", params={"runId": answer.json()["runId"]})
    first = events.json()["items"][0]
    assert (first["actor"]["kind"], first["actor"]["token"]) == ("token", "admin")
    assert token not in events.text
    assert house.http.delete("/v1/page-tokens/current").json() == {"wasKnown": False}

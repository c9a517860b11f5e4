"""Who may do what: the administrator, the tokens of the configuration, and nobody."""

from collections.abc import Iterator

import httpx2
import pytest

from tests.support.http.problems import problem_of
from tests.support.http.requests import pages_of_events, spawn_body
from tests.support.http.wire import client_of, exchange, head
from tests.support.servers.http_server import ONE, House

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
def test_a_reader_gets_summaries_of_its_trees_and_no_texts(
    as_token: httpx2.Client, reader_run: dict[str, object]
) -> None:
    listed = as_token.get("/v1/runs", params={"limit": 500}).json()["items"]
    assert reader_run["runId"] in {run["runId"] for run in listed}
    assert all(run["requesterSessionKey"].startswith("agent:main:reader-") for run in listed)
    run = as_token.get(f"/v1/runs/{reader_run['runId']}").json()
    assert "resultText" not in run
    assert "task" not in run
    assert run["taskPreview"]


@pytest.mark.parametrize("as_token", ["texts"], indirect=True)
def test_one_that_may_read_texts_gets_them(
    as_token: httpx2.Client, reader_run: dict[str, object]
) -> None:
    own = reader_run["runId"]
    assert as_token.get(f"/v1/runs/{own}").json()["task"] == "a secret task"
    assert "a secret task" in as_token.get(f"/v1/runs/{own}/prompt").json()["message"]
    assert as_token.get(f"/v1/runs/{own}/transcript").json()["items"]


@pytest.mark.parametrize("as_token", ["reader"], indirect=True)
def test_a_reader_sees_the_events_of_its_trees_alone(
    as_token: httpx2.Client, reader_run: dict[str, object]
) -> None:
    pages = pages_of_events(as_token, limit=500)
    items = [item for page in pages for item in page.json()["items"]]
    assert {item["runId"] for item in items} >= {reader_run["runId"]}
    assert all(item["correlation"].startswith("agent:main:reader-") for item in items)


@pytest.mark.parametrize("as_token", ["reader"], indirect=True)
def test_an_announcement_shows_a_reader_its_beginning_only(
    house: House, as_token: httpx2.Client
) -> None:
    run = house.ended(house.session("reader"))
    path = f"/v1/sessions/{run['requesterSessionKey']}/announcements"
    (seen,) = as_token.get(path).json()["items"]
    (whole,) = house.http.get(path).json()["items"]
    assert len(whole["text"]) > len(seen["text"])
    assert whole["text"].startswith(seen["text"])


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
            every = house.http.get("/v1/lanes").json()["items"]
            seen = [run for lane in every for run in lane["running"]]
            assert {"hidden", "shown"} <= {run["label"] for run in seen}
            assert all(run["holder"] for run in seen)

"""Requests under foreign names are refused, and no answer tells what the server keeps to itself."""

import pytest

from tests.support.http.problems import problem_of, well_formed_problem
from tests.support.http.requests import pages_of_events, request_head
from tests.support.http.streams import StreamReader
from tests.support.http.wire import exchange, head
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server


SESSION = "agent:main:main"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "evil.example:80",
        "127.0.0.1@evil.example",
        "",
        "[",
    ],
)
def test_a_foreign_host_is_refused(house: House, host: str) -> None:
    answer = exchange(house.server.url, request_head(house, "/v1/runs", ("Host", host)))
    problem_of(answer, 403, "foreign_host")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "LOCALHOST:1", "[::1]:8700", "spawnlog.example", "Spawnlog.Example:443"]
)
def test_its_own_names_and_those_of_the_configuration_are_taken(house: House, host: str) -> None:
    answer = exchange(house.server.url, request_head(house, "/v1/runs", ("Host", host)))
    assert answer.status_code == 200


def test_two_hosts_or_none_are_refused(house: House) -> None:
    for hosts in ((), ("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "evil.example")):
        headers = [("Host", host) for host in hosts]
        answer = exchange(house.server.url, request_head(house, "/v1/runs", *headers))
        assert answer.status_code in (400, 403)
        if answer.status_code == 403:
            problem_of(answer, 403, "foreign_host")


def test_health_is_not_told_under_a_foreign_name_either(house: House) -> None:
    answer = exchange(house.server.url, head("GET", "/healthz", {"Host": "evil.example"}))
    problem_of(answer, 403, "foreign_host")


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://127.0.0.1.evil.example", "file://", "http://["],
)
def test_a_foreign_origin_is_refused(house: House, origin: str) -> None:
    problem_of(house.http.get("/v1/runs", headers={"Origin": origin}), 403, "foreign_origin")
    answer = house.http.post(
        "/v1/spawns",
        json={"requester": {"sessionKey": SESSION}, "task": "x"},
        headers={"Origin": origin},
    )
    problem_of(answer, 403, "foreign_origin")


def test_its_own_origin_is_taken(house: House) -> None:
    for origin in (house.server.url, "https://spawnlog.example"):
        assert house.http.get("/v1/runs", headers={"Origin": origin}).status_code == 200


def test_no_page_is_given_rights_across_origins(house: House) -> None:
    answer = house.http.options(
        "/v1/spawns",
        headers={"Origin": house.server.url, "Access-Control-Request-Method": "POST"},
    )
    well_formed_problem(answer)
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_no_answer_tells_a_secret(house: House) -> None:
    session = house.session()
    with house.held(session) as run:
        everything = [
            house.http.get(path).text
            for path in (
                "/openapi.json",
                "/healthz",
                "/readyz",
                "/v1/runs?limit=500",
                f"/v1/runs/{run.run_id}",
                f"/v1/runs/{run.run_id}/events",
                f"/v1/runs/{run.run_id}/transcript?tools=true",
                f"/v1/sessions/{session}",
                f"/v1/sessions/{session}/announcements",
                "/v1/agents",
                "/v1/lanes",
                "/v1/nothing",
            )
        ]
        everything += [page.text for page in pages_of_events(house.http, limit=500)]
        secrets = {**house.secrets, "admin": house.server.token, "child": run.token}
        for name, secret in secrets.items():
            for text in everything:
                assert secret not in text, f"the {name} token"
        assert any('"ConfigurationActivated"' in text for text in everything)
        log = house.server.log()
    for secret in secrets.values():
        assert secret not in log


@pytest.mark.parametrize("name", ["reader", "spawner", "agent"])
def test_no_refusal_repeats_a_secret(house: House, name: str) -> None:
    secret = house.secrets[name]
    answers = [
        house.http.get(f"/v1/{secret}"),
        house.http.get("/v1/runs", params={"token": secret}),
        house.http.get("/v1/runs", headers={"Authorization": f"Bearer {secret}x"}),
        house.http.get("/v1/runs", headers={"Host": secret}),
        house.http.get("/v1/runs", headers={"Origin": f"http://{secret}"}),
        house.http.post("/v1/spawns", json={"requester": {"sessionKey": "a"}, "label": [secret]}),
        house.http.post("/v1/spawns", content=f'{{"x": "{secret}'.encode()),
        house.post(f'{{"task": "{secret}'.encode()),
    ]
    for answer in answers:
        assert answer.status_code >= 400
        body = answer.json()
        assert secret not in body["detail"]
        assert not [error for error in body.get("errors", ()) if secret in error["detail"]]
    assert secret not in house.server.log()


def test_no_answer_tells_where_the_server_lives(house: House) -> None:
    for answer in (
        house.http.get("/v1/nothing"),
        house.http.get("/v1/runs", params={"limit": "x"}),
        house.post(b"{"),
        house.spawn("agent:a b:c"),
        house.spawn(house.session(), agentId="nobody-knows"),
    ):
        assert answer.status_code >= 400
        assert str(house.server.data_dir) not in answer.text
        assert "Traceback" not in answer.text
        assert ".py" not in answer.text


def test_no_stream_tells_a_secret(house: House) -> None:
    with StreamReader(house.server.url, "/v1/events?after=0", house.server.token) as stream:
        first = stream.event()
        assert first.event == "ConfigurationActivated"
        shown = str(first.data)
    for secret in (*house.secrets.values(), house.server.token):
        assert secret not in shown


def test_what_is_answered_is_not_kept_by_those_between(house: House) -> None:
    for path in ("/v1/runs", "/v1/nothing", "/healthz", "/openapi.json"):
        answer = house.http.get(path)
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "server" not in answer.headers

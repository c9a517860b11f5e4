"""Requests under foreign names are refused, and no answer tells what the server keeps to itself."""

import pytest

from tests.support.http.problems import problem_of, well_formed_problem
from tests.support.http.requests import pages_of_events, request_head
from tests.support.http.streams import StreamReader
from tests.support.http.wire import exchange, head
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server

FOREIGN = [
    "evil.example", "127.0.0.1.evil.example", "evil.example:80", "127.0.0.1@evil.example", "", "[",
]  # fmt: skip
OWN = ["127.0.0.1", "LOCALHOST:1", "[::1]:8700", "spawnlog.example", "Spawnlog.Example:443"]
FOREIGN_ORIGINS = [
    "https://evil.example", "null", "http://127.0.0.1.evil.example", "file://", "http://[",
]  # fmt: skip


def test_foreign_host_is_refused(house: House) -> None:
    for host in FOREIGN:
        for request in (
            request_head(house, "/v1/runs", ("Host", host)),
            head("GET", "/healthz", {"Host": host}),
        ):
            problem_of(exchange(house.server.url, request), 403, "foreign_host")
    for host in OWN:
        answer = exchange(house.server.url, request_head(house, "/v1/runs", ("Host", host)))
        assert answer.status_code == 200, host


def test_two_hosts_or_none_are_refused(house: House) -> None:
    for hosts in ((), ("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "evil.example")):
        headers = [("Host", host) for host in hosts]
        answer = exchange(house.server.url, request_head(house, "/v1/runs", *headers))
        assert answer.status_code in (400, 403)


def test_foreign_origin_is_refused(house: House) -> None:
    body = {"requester": {"sessionKey": "agent:main:main"}, "task": "x"}
    for origin in FOREIGN_ORIGINS:
        headers = {"Origin": origin}
        problem_of(house.http.get("/v1/runs", headers=headers), 403, "foreign_origin")
        answer = house.http.post("/v1/spawns", json=body, headers=headers)
        problem_of(answer, 403, "foreign_origin")
    for origin in (house.server.url, "https://spawnlog.example"):
        assert house.http.get("/v1/runs", headers={"Origin": origin}).status_code == 200
    preflight = {"Origin": house.server.url, "Access-Control-Request-Method": "POST"}
    answer = house.http.options("/v1/spawns", headers=preflight)
    well_formed_problem(answer)
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_no_answer_shows_a_secret(house: House) -> None:
    session = house.session()
    with house.held(session) as run:
        paths = [
            *("/openapi.json", "/healthz", "/readyz", "/v1/runs?limit=500", "/v1/agents"),
            *("/v1/lanes", "/v1/nothing", f"/v1/sessions/{session}"),
            f"/v1/runs/{run.run_id}",
            f"/v1/runs/{run.run_id}/events",
            f"/v1/runs/{run.run_id}/transcript?tools=true",
            f"/v1/sessions/{session}/announcements",
        ]
        shown = [house.http.get(path).text for path in paths]
        shown += [page.text for page in pages_of_events(house.http, limit=500)]
        with StreamReader(house.server.url, "/v1/events?after=0", house.server.token) as stream:
            shown.append(str(stream.event().data))
        shown.append(house.server.log())
        secrets = {**house.secrets, "admin": house.server.token, "child": run.token}
        for name, secret in secrets.items():
            assert not any(secret in text for text in shown), f"the {name} token"
    assert any('"ConfigurationActivated"' in text for text in shown)


def test_no_refusal_repeats_a_secret(house: House) -> None:
    secret = house.secrets["reader"]
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


def test_no_refusal_shows_where_the_server_lives(house: House) -> None:
    for answer in (
        house.http.get("/v1/nothing"),
        house.http.get("/v1/runs", params={"limit": "x"}),
        house.post(b"{"),
        house.spawn("agent:a b:c"),
        house.spawn(house.session(), agentId="nobody-knows"),
    ):
        assert answer.status_code >= 400
        for told in (str(house.server.data_dir), "Traceback", ".py"):
            assert told not in answer.text

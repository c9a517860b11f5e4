"""Requests under foreign host names are refused, and no answer shows internals of the server."""

import pytest

from tests.support.http.problems import problem_of, well_formed_problem
from tests.support.http.requests import pages_of_events, post_bytes, request_head
from tests.support.http.streams import StreamReader
from tests.support.http.wire import exchange, head
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

FOREIGN = [
    "evil.example", "127.0.0.1.evil.example", "evil.example:80", "127.0.0.1@evil.example", "", "[",
]  # fmt: skip
OWN = ["127.0.0.1", "LOCALHOST:1", "[::1]:8700", "spawnlog.example", "Spawnlog.Example:443"]
FOREIGN_ORIGINS = [
    "https://evil.example", "null", "http://127.0.0.1.evil.example", "file://", "http://[",
]  # fmt: skip


def test_foreign_host_is_refused(server: Server) -> None:
    for host in FOREIGN:
        for request in (
            request_head(server, "/v1/runs", ("Host", host)),
            head("GET", "/healthz", {"Host": host}),
        ):
            problem_of(exchange(server.url, request), 403, "foreign_host")
    for host in OWN:
        answer = exchange(server.url, request_head(server, "/v1/runs", ("Host", host)))
        assert answer.status_code == 200, host


def test_two_hosts_or_none_are_refused(server: Server) -> None:
    for hosts in ((), ("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "evil.example")):
        headers = [("Host", host) for host in hosts]
        answer = exchange(server.url, request_head(server, "/v1/runs", *headers))
        assert answer.status_code in (400, 403)


def test_foreign_origin_is_refused(server: Server) -> None:
    body = {"requester": {"sessionKey": "agent:main:main"}, "task": "x"}
    for origin in FOREIGN_ORIGINS:
        headers = {"Origin": origin}
        problem_of(server.http.get("/v1/runs", headers=headers), 403, "foreign_origin")
        answer = server.http.post("/v1/spawns", json=body, headers=headers)
        problem_of(answer, 403, "foreign_origin")
    for origin in (server.url, "https://spawnlog.example"):
        assert server.http.get("/v1/runs", headers={"Origin": origin}).status_code == 200
    preflight = {"Origin": server.url, "Access-Control-Request-Method": "POST"}
    answer = server.http.options("/v1/spawns", headers=preflight)
    well_formed_problem(answer)
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_no_answer_shows_a_secret(server: Server) -> None:
    session = server.new_session()
    with server.held(session) as run:
        paths = [
            *("/openapi.json", "/healthz", "/readyz", "/v1/runs?limit=500", "/v1/agents"),
            *("/v1/lanes", "/v1/nothing", f"/v1/sessions/{session}"),
            f"/v1/runs/{run.run_id}",
            f"/v1/runs/{run.run_id}/events",
            f"/v1/runs/{run.run_id}/transcript?tools=true",
            f"/v1/sessions/{session}/announcements",
        ]
        shown = [server.http.get(path).text for path in paths]
        shown += [page.text for page in pages_of_events(server.http, limit=500)]
        with StreamReader(server.url, "/v1/events?after=0", server.token) as stream:
            shown.append(str(stream.event().data))
        shown.append(server.log())
        secrets = {**server.secrets, "admin": server.token, "child": run.token}
        for name, secret in secrets.items():
            assert not any(secret in text for text in shown), f"the {name} token"
    assert any('"ConfigurationActivated"' in text for text in shown)


def test_no_refusal_repeats_a_secret(server: Server) -> None:
    secret = server.secrets["reader"]
    answers = [
        server.http.get(f"/v1/{secret}"),
        server.http.get("/v1/runs", params={"token": secret}),
        server.http.get("/v1/runs", headers={"Authorization": f"Bearer {secret}x"}),
        server.http.get("/v1/runs", headers={"Host": secret}),
        server.http.get("/v1/runs", headers={"Origin": f"http://{secret}"}),
        server.http.post("/v1/spawns", json={"requester": {"sessionKey": "a"}, "label": [secret]}),
        server.http.post("/v1/spawns", content=f'{{"x": "{secret}'.encode()),
        post_bytes(server, f'{{"task": "{secret}'.encode()),
    ]
    for answer in answers:
        assert answer.status_code >= 400
        body = answer.json()
        assert secret not in body["detail"]
        assert not [error for error in body.get("errors", ()) if secret in error["detail"]]
    assert secret not in server.log()


def test_no_refusal_shows_where_the_server_lives(server: Server) -> None:
    for answer in (
        server.http.get("/v1/nothing"),
        server.http.get("/v1/runs", params={"limit": "x"}),
        post_bytes(server, b"{"),
        server.spawn(session="agent:a b:c"),
        server.spawn(session=server.new_session(), agentId="nobody-knows"),
    ):
        assert answer.status_code >= 400
        for item in (str(server.data_dir), "Traceback", ".py"):
            assert item not in answer.text

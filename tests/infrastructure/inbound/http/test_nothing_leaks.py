"""What the server must keep to itself stands in none of its answers, and not in its log."""

import pytest

from tests.support.http.requests import pages_of_events
from tests.support.http.streams import StreamReader
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server


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

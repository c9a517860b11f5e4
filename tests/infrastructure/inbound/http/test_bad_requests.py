"""Requests that are wrong before anybody looks at their body."""

import json

import pytest

from tests.support.http.problems import pointers_of, problem_of, well_formed_problem
from tests.support.http.requests import asked
from tests.support.http.wire import exchange
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server

SESSION = "agent:main:main"


@pytest.mark.parametrize(
    "target",
    [
        "/nothing",
        "/v1",
        "/v1/",
        "/v1/nothing",
        "/v1/runs/",
        "/v1/spawns/",
        "/v1/config/revisions/1000",
        "/docs",
        "/v1/runs/0/compare?with=1",
        "/v1/runs/0/explain",
        "/v1/runs/0/shared-context",
        f"/v1/sessions/{SESSION}/tree",
        f"/v1/sessions/{SESSION}/shared-context",
        "/v1/../admin-token",
        "/v1/runs/..%2f..%2fadmin-token",
    ],
)
def test_what_is_not_there_is_not_found(house: House, target: str) -> None:
    answer = exchange(house.server.url, asked(house, target, ("Host", "127.0.0.1")))
    problem_of(answer, 404, "not_found")


@pytest.mark.parametrize(
    ("method", "target", "allowed"),
    [
        ("DELETE", "/v1/runs", "GET"),
        ("GET", "/v1/spawns", "POST"),
        ("PUT", "/healthz", "GET"),
        ("OPTIONS", f"/v1/sessions/{SESSION}/shared-context", "GET, PATCH"),
        ("DELETE", f"/v1/sessions/{SESSION}/shared-context", "GET, PATCH"),
    ],
)
def test_a_wrong_method_is_told_the_right_one(
    house: House, method: str, target: str, allowed: str
) -> None:
    answer = house.http.request(method, target)
    problem_of(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == allowed


@pytest.mark.parametrize(
    ("target", "code", "status"),
    [
        ("/v1/runs?label=%00", "invalid_request", 422),
        ("/v1/runs?agentId=a%00b", "invalid_request", 422),
        ("/v1/runs?requester=%00", "invalid_request", 422),
        ("/v1/runs?tree=agent:main:%00", "invalid_request", 422),
        ("/v1/sessions/%00", "invalid_request", 422),
        ("/v1/sessions/agent:main:%07", "invalid_request", 422),
        ("/v1/sessions/agent:main:%1F", "invalid_request", 422),
        ("/v1/sessions/a%00b/announcements", "invalid_request", 422),
        ("/v1/runs/%00", "invalid_request", 422),
        ("/v1/runs?requester=" + "x" * 3000, "invalid_request", 422),
        ("/v1/runs?label=" + "x" * 3000, "invalid_request", 422),
        ("/v1/sessions/" + "x" * 3000, "invalid_request", 422),
        ("/v1/sessions/" + "%20" * 2000 + "main", "invalid_request", 422),
        ("/v1/runs?label=" + "x" * 20_000, "target_too_long", 414),
        ("/v1/runs?requester=%ED%A0%80", None, 200),
        ("/v1/runs?label=%FF%FE", None, 200),
        ("/v1/sessions/%FF", "not_found", 404),
        ("/v1/runs/x", "not_found", 404),
        ("/v1/runs/" + "-" * 3000, "not_found", 404),
        ("/v1/runs/{12345678-1234-5678-1234-567812345678}", "not_found", 404),
        ("/v1/runs/12345678-1234-5678-1234-567812345678", "not_found", 404),
    ],
)
def test_texts_in_a_url_do_no_harm(
    house: House, target: str, code: str | None, status: int
) -> None:
    answer = exchange(house.server.url, asked(house, target, ("Host", "127.0.0.1")))
    if code is None:
        assert answer.status_code == status, answer.text
    else:
        problem_of(answer, status, code)


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=501",
        "limit=-1",
        "limit=x",
        "limit=1e2",
        "limit=99999999999999999999999",
        "order=up",
        "stage=begun",
        "status=fine",
        "outcome=good",
        "since=yesterday",
        "since=2024-01-01",
        "since=2024-01-01T00:00:00",
        "since=2024-W01-1T00:00:00Z",
        "since=0001-01-01T00:00:00%2B14:00",
        "until=9999-12-31T23:59:59-14:00",
        "at=pos:-1",
        "at=pos:x",
        "at=7",
        "at=pos:999999999999999999",
        "at=pos:9999999999999999999999",
        "at=2999-01-01T00:00:00Z",
        "at=0001-01-01T00:00:00%2B14:00",
        "agentID=main",
        "page=2",
    ],
)
def test_a_question_that_cannot_be_understood_is_invalid(house: House, query: str) -> None:
    problem_of(house.http.get(f"/v1/runs?{query}"), 422, "invalid_request")


@pytest.mark.parametrize(
    "target",
    [
        "/v1/events?after=-1",
        "/v1/events?after=x",
        "/v1/events?after=1000000000000000000000000000000",
        "/v1/events?types=NoSuchType",
        "/v1/events?at=pos:x",
        "/v1/events?q=pos:1",
        f"/v1/sessions/{SESSION}/announcements?after=1000000000000000000000000000000",
        f"/v1/sessions/{SESSION}/announcements?wait=soon",
        f"/v1/sessions/{SESSION}/announcements?at=pos:x",
        "/v1/agents?requester=agent:a%20b:x",
        "/v1/agents?at=pos:x",
        "/healthz/?x=1",
    ],
)
def test_other_questions_are_as_strict(house: House, target: str) -> None:
    answer = house.http.get(target)
    if target.startswith("/healthz"):
        problem_of(answer, 404, "not_found")
    else:
        problem_of(answer, 422, "invalid_request")


def test_an_unknown_parameter_is_named_and_the_known_ones_are_told(house: House) -> None:
    problem = problem_of(house.http.get("/v1/runs?agentID=main"), 422, "invalid_request")
    assert pointers_of(problem) == ["/query/agentID"]
    assert "agentId" in problem["detail"]


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("/v1/runs?limit=1&limit=2", "limit"),
        ("/v1/runs?order=asc&limit=1&order=asc", "order"),
        ("/v1/runs?requester=main&requester=main", "requester"),
        ("/v1/runs?label=a&label=b&at=pos:1&at=pos:1", "at"),
        ("/v1/runs?since=2024-01-01T00:00:00Z&since=x", "since"),
        ("/v1/runs/0?version=1&version=2", "version"),
        ("/v1/runs/0/transcript?tools=true&tools=false", "tools"),
        ("/v1/events?after=1&after=2", "after"),
        ("/v1/agents?requester=main&requester=main", "requester"),
        (f"/v1/sessions/{SESSION}/shared-context?at=pos:1&at=", "at"),
    ],
)
def test_what_may_stand_once_does_not_stand_twice(house: House, target: str, name: str) -> None:
    problem = problem_of(house.http.get(target), 422, "invalid_request")
    assert pointers_of(problem) == [f"/query/{name}"]
    assert problem["detail"] == f"/query/{name}: may be given once only"


def test_questions_about_one_run_are_strict_too(house: House) -> None:
    run = house.ended(house.session())
    for rest in (
        "?version=0",
        "?version=x",
        "?wait=1y",
        "?wait=-1s",
        "?until=ended",
        "?wait=1s&until=over",
        "?wait=1s&at=pos:1",
        "?version=1&at=pos:1",
        "?wait=1s&version=1",
        "/transcript?after=-1",
        "/transcript?after=1000000000000000000000000000000",
        "/transcript?tools=maybe",
        "/transcript?tool=true",
        "/events?at=pos:x",
        "/events?limit=0",
        "/prompt?at=pos:-1",
    ):
        answer = house.http.get(f"/v1/runs/{run['runId']}{rest}")
        problem_of(answer, 422, "invalid_request")
    answer = house.http.get(f"/v1/runs/{run['runId']}?version=99999999999999999999")
    assert answer.status_code in (404, 422)
    well_formed_problem(answer)


@pytest.mark.parametrize("value", ["²", "x", "-1", "1.5", "9" * 5000, " ", "0x1"])
def test_a_last_event_id_that_is_no_position_is_invalid(house: House, value: str) -> None:
    request = asked(
        house,
        "/v1/events",
        ("Host", "127.0.0.1"),
        ("Accept", "text/event-stream"),
        ("Last-Event-ID", value),
    )
    problem_of(exchange(house.server.url, request), 422, "invalid_request")


@pytest.mark.parametrize("key", ["", "x" * 256, "\t", "a\x7fb"])
def test_an_idempotency_key_that_is_none_is_invalid(house: House, key: str) -> None:
    session = house.session()
    made = json.dumps({"requester": {"sessionKey": session}, "task": "x"}).encode()
    request = asked(
        house,
        "/v1/spawns",
        ("Host", "127.0.0.1"),
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(made))),
        ("Idempotency-Key", key),
        method="POST",
    )
    answer = exchange(house.server.url, request, made)
    assert answer.status_code in (400, 422)
    assert house.runs(session) == []


def test_headers_without_end_are_refused(house: House) -> None:
    many = [(f"X-Header-{number}", "x" * 1000) for number in range(100)]
    request = asked(house, "/v1/runs", ("Host", "127.0.0.1"), *many)
    problem_of(exchange(house.server.url, request), 431, "headers_too_large")


def test_what_is_no_http_is_answered_and_left(house: House) -> None:
    answer = exchange(house.server.url, b"\x16\x03\x01 hello\r\n\r\n")
    assert answer.status_code == 400
    assert house.http.get("/healthz").status_code == 200

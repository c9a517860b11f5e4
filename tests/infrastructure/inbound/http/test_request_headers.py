"""What requests say beside their bodies: headers given twice, accepted types, paths and methods."""

import time

import pytest
from starlette.requests import Request

from infrastructure.inbound.http.requests.event_stream import prefers_stream
from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.requests import a_key, replayed
from tests.support.servers.inner_server import InnerServer

JSON = ("Content-Type", "application/json")
EVENTS = "text/event-stream"


@pytest.mark.server
@pytest.mark.parametrize(
    ("method", "target", "name"),
    [
        ("POST", "/v1/runs/x/stop", "Idempotency-Key"),
        ("PATCH", "/v1/sessions/agent:main:main/shared-context", "If-Match"),
        ("GET", "/v1/events", "Last-Event-ID"),
    ],
)
def test_header_given_twice_is_refused(
    inner: InnerServer, method: str, target: str, name: str
) -> None:
    headers = [JSON, ("Accept", EVENTS), (name, '"1"'), (name, '"2"')]
    content = b"" if method == "GET" else b"{}"
    answer = inner.request(method, target, headers=headers, content=content)
    assert pointers_of(problem_of(answer, 422, "invalid_request")) == [f"/headers/{name}"]


@pytest.mark.server
def test_key_counts_for_one_session_whatever_its_escapes(inner: InnerServer) -> None:
    sessions = {"agent:main:a%3Fb": "agent:main:a?b", "agent:main:a%253Fb": "agent:main:a%3fb"}
    key = ("Idempotency-Key", a_key())
    for session in sessions.values():
        inner.spawn(requester={"sessionKey": session})
    for part, session in sessions.items():
        target = f"/v1/sessions/{part}/stop"
        answer = inner.request("POST", target, headers=[JSON, key], content=b"{}")
        assert answer.json()["sessionKey"] == session
        assert not replayed(answer)


@pytest.mark.server
@pytest.mark.parametrize(
    ("target", "pointer", "detail"),
    [
        ("/v1/runs?limit=0", "/query/limit", "must be at least 1"),
        ("/v1/runs?limit=x", "/query/limit", "must be a whole number"),
        ("/v1/runs?stage=x", "/query/stage/0", 'must be one of "requested", '),
        ("/v1/diff?from=pos:1", "/query/to", "is required"),
        ("/v1/config/revisions/x", "/path/revision", "must be a whole number"),
    ],
)
def test_parameter_is_refused_in_words_of_bodies(
    inner: InnerServer, target: str, pointer: str, detail: str
) -> None:
    problem = problem_of(inner.request("GET", target), 422, "invalid_request")
    (error,) = problem["errors"]
    assert error["pointer"] == pointer
    assert error["detail"].startswith(detail)


@pytest.mark.server
def test_wait_ends_if_its_caller_leaves(inner: InnerServer, names: dict[str, str]) -> None:
    began = time.monotonic()
    inner.leave(f"/v1/runs/{names['runId']}?until=archived&wait=60s")
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("accepted", "prefers"),
    [
        ([], False),
        (["*/*"], False),
        (["text/*"], False),
        (["application/json"], False),
        ([EVENTS], True),
        (["Text/Event-Stream"], True),
        ([f"{EVENTS}; charset=utf-8"], True),
        ([f"application/json, {EVENTS}"], True),
        (["application/json", EVENTS], True),
        ([f"application/json;q=0.5, {EVENTS};q=0.9"], True),
        ([f"application/json, {EVENTS};q=0.9"], False),
        ([f"{EVENTS};q=0"], False),
        ([f"{EVENTS};q=0.000"], False),
        ([f"{EVENTS};q=nan"], False),
        ([f"{EVENTS}er"], False),
        ([f'application/json;x="{EVENTS}"'], False),
    ],
)
def test_stream_is_sent_if_json_is_not_preferred(accepted: list[str], prefers: bool) -> None:
    headers = [(b"accept", one.encode()) for one in accepted]
    assert prefers_stream(Request({"type": "http", "headers": headers})) is prefers

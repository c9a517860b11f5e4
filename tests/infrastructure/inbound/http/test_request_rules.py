"""Rules of requests beyond the schema: bodies, queries, headers, paths and sizes."""

import json
import time
from typing import Any

import httpx2
import pytest

from domain.session.shared_context import SHARED_BYTES_MAX, SHARED_DEPTH_MAX
from infrastructure.inbound.http.middleware.body_limits import (
    DISCARD_SECONDS_MAX,
    DISCARDED_BYTES_MAX,
)
from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.requests import (
    a_key,
    post_bytes,
    replayed,
    request_head,
    spawn_body,
    spawn_head,
)
from tests.support.http.wire import Authority, answer_on, exchange
from tests.support.servers.server import Server

pytestmark = pytest.mark.server


MIB = 1024 * 1024
EVENTS = "text/event-stream"


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


def bare(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = {"": value}
    return value


def requester(**more: Any) -> dict[str, Any]:
    return {"requester": {"sessionKey": "main", **more}}


PARALLEL: dict[str, Any] = {"task": ["one", "two"], "parallel": True}
FILE = {"name": "a", "content": "x"}
LARGE = [{"name": "a.txt", "content": "x" * 1_000_000}]
SPAWNS: list[tuple[dict[str, Any], str, str]] = [
    ({"task": ""}, "/task", "task required"),
    ({"task": " \n\t "}, "/task", "task required"),
    ({"label": "two\nlines"}, "/label", "one line"),
    # Batches.
    ({"task": ["one", "two"]}, "/task", "a list of tasks needs parallel: true"),
    ({"parallel": True}, "/parallel", "requires a list of tasks"),
    ({"task": [], "parallel": True}, "/task", "must not be empty"),
    ({"task": ["one", " \n"], "parallel": True}, "/task/1", "task required"),
    ({"task": ["x"] * 51, "parallel": True}, "/task", "has 51 tasks, more than the 50 allowed"),
    (
        {**PARALLEL, "label": "l" * 199},
        "/label",
        "has 201 characters with its number, more than the 200 allowed",
    ),
    (
        {"task": ["one"] * 40, "parallel": True, "attachments": LARGE},
        "/attachments",
        "copied for each of 40 tasks: more than 33554432 in total",
    ),
    # Dependencies.
    ({"dependsOn": ["a", "b\nc"]}, "/dependsOn/1", "printable characters"),
    ({"dependsOn": [{"run": " "}]}, "/dependsOn/0/run", "printable characters"),
    ({"dependsOn": ["a"] * 20, "chainAfter": "b"}, "/chainAfter", "the dependencies to 21"),
    # Requesters.
    *(
        ({"requester": {"sessionKey": key}}, "/requester/sessionKey", "")
        for key in ("   ", "agent:main", "agent:a b:x", "agent:main:\x07", "x" * 513, ":")
    ),
    *(
        (requester(workspaceDir=folder), "/requester/workspaceDir", "absolute path")
        for folder in ("srv/agents", "~/x", "C:\\\\x", "/srv\n/x")
    ),
    (requester(activeModel="a b"), "/requester/activeModel", "name of a model"),
    (requester(agentIdOverride="a b"), "/requester/agentIdOverride", "must match"),
    # Attachments.
    ({"attachAs": {"mountPath": "/srv/in"}}, "/attachAs/mountPath", "requires attachments"),
    *(
        ({"attachments": [FILE], "attachAs": {"mountPath": path}}, "/attachAs/mountPath", "path of")
        for path in ("/srv/in put", "$(id)", "ä", "/" * 256)
    ),
    # Shared contexts.
    (
        {"sharedContext": {"k": "x" * SHARED_BYTES_MAX}},
        "/sharedContext",
        "65544 bytes of JSON, more than the 65536 allowed",
    ),
    ({"sharedContext": {f"k{n}": n for n in range(65)}}, "/sharedContext", "65 keys"),
    ({"sharedContext": {"k": nested(SHARED_DEPTH_MAX)}}, "/sharedContext", "deeper than 32"),
    ({"sharedContext": {"k": bare(SHARED_DEPTH_MAX)}}, "/sharedContext", "deeper than 32"),
    ({"sharedContext": {"": 1}}, "/sharedContext/", "1 to 128 printable characters"),
    ({"sharedContext": {" k": 1}}, "/sharedContext/k", "1 to 128 printable characters"),
    ({"sharedContext": {"a/b~\n": 1}}, "/sharedContext/a~1b~0", "1 to 128 printable"),
    ({"sharedContext": {"k" * 129: 1}}, f"/sharedContext/{'k' * 127}…", "1 to 128 printable"),
    ({"sharedContext": {"$": "reference"}}, "/sharedContext/$", "names no run"),
    ({"sharedContext": {"$x": "reference", "x": 1}}, "/sharedContext/$x", "give only one"),
    ({"sharedContext": {"$x": "else"}}, "/sharedContext/$x", 'must be "reference"'),
    ({"sharedContext": {f"$r{n}": "reference" for n in range(21)}}, "/sharedContext", "20"),
]


def post(server: Server, body: Any, path: str = "/v1/spawns") -> httpx2.Response:
    return post_bytes(server, json.dumps(body).encode(), path)


@pytest.mark.parametrize(
    ("fields", "pointer", "words"),
    SPAWNS,
    ids=[f"{n} {spawn[1]}" for n, spawn in enumerate(SPAWNS)],
)
def test_spawn_that_breaks_rule_is_refused_with_its_place(
    server: Server, fields: dict[str, Any], pointer: str, words: str
) -> None:
    answer = post(server, {**requester(), "task": "x", **fields})
    problem = problem_of(answer, 422, "invalid_request")
    assert pointers_of(problem) == [pointer]
    assert words in problem["detail"]


def test_tasks_over_limit_are_too_large(server: Server) -> None:
    for task in ("x" * 9 * MIB, ["x" * (4 * MIB + 1)] * 2):
        body = {**requester(), "task": task, "parallel": isinstance(task, list)}
        problem_of(post(server, body), 413, "too_large")


def test_every_fault_of_body_is_named(server: Server) -> None:
    body = {
        "requester": {"sessionKey": "main", "sessionkey": "x"},
        "task": "x",
        "cleanup": "burn",
        "thred": True,
        "label": 7,
        "attachAs": {"mountpath": "x"},
    }
    problem = problem_of(post(server, body), 422, "invalid_request")
    assert sorted(pointers_of(problem)) == [
        "/attachAs/mountpath",
        "/cleanup",
        "/label",
        "/requester/sessionkey",
        "/thred",
    ]
    assert {"pointer": "/thred", "detail": "unknown key"} in problem["errors"]
    assert any(error["detail"] == 'must be one of "delete", "keep"' for error in problem["errors"])
    twice = problem_of(
        post_bytes(server, b'{"config": {"a": {}, "a": {}}}', "/v1/what-if"), 422, "invalid_request"
    )
    assert twice["errors"] == [{"pointer": "/config/a", "detail": "is given twice"}]


RUN = "/v1/runs/{runId}"
QUERIES: list[tuple[str, str, str]] = [
    ("/v1/runs?limit=0", "/query/limit", "must be at least 1"),
    ("/v1/runs?limit=x", "/query/limit", "must be a whole number"),
    ("/v1/runs?stage=x", "/query/stage/0", 'must be one of "requested", '),
    ("/v1/runs?agentID=x", "/query/agentID", "known: requester"),
    ("/v1/diff?from=pos:1", "/query/to", "is required"),
    ("/v1/config/revisions/x", "/path/revision", "must be a whole number"),
    ("/v1/events?types=,", "/query/types", ""),
    ("/v1/events?types=%20", "/query/types", ""),
    # Moments that are none.
    ("/v1/runs?at=2024-W01-1T00:00:00Z", "/query/at", ""),
    ("/v1/runs?at=0001-01-01T00:00:00%2B14:00", "/query/at", ""),
    ("/v1/runs?at=2999-01-01T00:00:00Z", "/query/at", ""),
    ("/v1/runs?at=pos:9999999999999999999999", "/query/at", ""),
    ("/v1/diff?from=yesterday&to=pos:1", "/query/from", ""),
    ("/v1/diff?from=pos:1&to=run:nobody", "/query/to", ""),
    ("/v1/events/histogram?from=pos:2&to=pos:1", "/query/from", ""),
    ("/v1/events/histogram?to=pos:999999999", "/query/to", ""),
    (
        "/v1/events/histogram?actor=admin",
        "/query/actor",
        "only applies within a run or a tree; name one",
    ),
    # Words that cannot be looked for, and filters that no index has without a family or a tree.
    ("/v1/runs?q=%20", "/query/q", ""),
    ("/v1/runs?q=a+b+c+d+e+f+g+h+i", "/query/q", ""),
    ("/v1/runs?depth=1", "/query/depth", ""),
    ("/v1/timeline?labelPrefix=x", "/query/labelPrefix", ""),
    ("/v1/runs?rule=no+such+rule", "/query/rule", ""),
    # Parameters that exclude each other.
    ("/v1/events?before=5&order=asc", "/query/order", ""),
    (f"{RUN}?until=ended", "", "requires `wait`"),
    (f"{RUN}?wait=1s&at=pos:1", "", "use only one"),
    (f"{RUN}?version=1&at=pos:1", "", "use only one"),
    (f"{RUN}?wait=1s&version=1", "", "use only one"),
    (f"{RUN}?wait=-1s", "/query/wait", ""),
    (f"{RUN}/transcript?last=5&after=1", "/query/last", ""),
    (f"{RUN}/transcript?last=5&limit=50", "/query/last", ""),
]


@pytest.mark.parametrize(("target", "pointer", "words"), QUERIES)
def test_query_that_breaks_rule_is_refused_with_its_place(
    server: Server, names: dict[str, str], target: str, pointer: str, words: str
) -> None:
    problem = problem_of(server.http.request("GET", target.format(**names)), 422, "invalid_request")
    assert pointers_of(problem) == ([pointer] if pointer else [])
    assert words in problem["detail"]


@pytest.mark.parametrize("query", ["at=pos:1", "last=1", "wait=1s", "limit=50"])
def test_stream_of_transcript_takes_no_parameter_of_page(
    server: Server, names: dict[str, str], query: str
) -> None:
    target = f"/v1/runs/{names['runId']}/transcript?{query}"
    answer = server.http.request("GET", target, headers={"Accept": EVENTS})
    problem = problem_of(answer, 422, "invalid_request")
    assert "at, last, limit and wait cannot be used" in problem["detail"]


def test_redrive_names_webhook_or_hook(server: Server, names: dict[str, str]) -> None:
    path = f"/v1/announcements/{names['id']}/redrive"
    both = {"reason": "again", "webhook": "gateway", "hook": "subagentEnded"}
    problem = problem_of(post(server, both, path), 422, "invalid_request")
    assert pointers_of(problem) == ["/hook"]
    redrive = {"reason": "again", "hook": "subagentEnded"}
    problem = problem_of(post(server, redrive, path), 409, "no_announcement")
    assert problem["detail"].endswith("has no parked delivery to hook subagentEnded")


@pytest.mark.parametrize(
    ("target", "status", "code"),
    [
        ("/nothing", 404, "not_found"),
        ("/v1", 404, "not_found"),
        ("/v1/", 404, "not_found"),
        ("/v1/runs/", 404, "not_found"),
        ("/healthz/?x=1", 404, "not_found"),
        ("/docs", 404, "not_found"),
        ("/v1/../admin-token", 404, "not_found"),
        ("/v1/runs/..%2f..%2fadmin-token", 404, "not_found"),
        ("/v1/config/revisions/1000", 404, "not_found"),
        ("/v1/sessions/%FF", 404, "not_found"),
        ("/v1/runs/{12345678-1234-5678-1234-567812345678}", 404, "not_found"),
        ("/v1/runs?label=%00", 422, "invalid_request"),
        ("/v1/runs?tree=agent:main:%00", 422, "invalid_request"),
        ("/v1/sessions/%00", 422, "invalid_request"),
        ("/v1/sessions/agent:main:%07", 422, "invalid_request"),
        ("/v1/sessions/agent:main:%1F", 422, "invalid_request"),
        ("/v1/agents?requester=agent:a%20b:x", 422, "invalid_request"),
        ("/v1/runs?label=" + "x" * 20_000, 414, "target_too_long"),
    ],
)
def test_target_that_names_nothing_is_refused(
    server: Server, target: str, status: int, code: str
) -> None:
    answer = exchange(server.url, request_head(server, target, ("Host", "127.0.0.1")))
    problem_of(answer, status, code)


@pytest.mark.parametrize("target", ["/v1/runs?requester=%ED%A0%80", "/v1/runs?label=%FF%FE"])
def test_text_of_url_without_unicode_finds_nothing(server: Server, target: str) -> None:
    answer = exchange(server.url, request_head(server, target, ("Host", "127.0.0.1")))
    assert answer.json()["items"] == []


@pytest.mark.parametrize("value", ["²", "-1", "1.5", "9" * 5000, " "])
def test_last_event_id_without_position_is_refused(server: Server, value: str) -> None:
    headers = [("Host", "127.0.0.1"), ("Accept", EVENTS), ("Last-Event-ID", value)]
    request = request_head(server, "/v1/events", *headers)
    problem_of(exchange(server.url, request), 422, "invalid_request")


def test_headers_over_limit_are_refused(server: Server) -> None:
    many = [(f"X-Header-{number}", "x" * 1000) for number in range(100)]
    request = request_head(server, "/v1/runs", ("Host", "127.0.0.1"), *many)
    problem_of(exchange(server.url, request), 431, "headers_too_large")


def test_bytes_that_are_no_http_are_answered(server: Server) -> None:
    answer = exchange(server.url, b"\x16\x03\x01 hello\r\n\r\n")
    assert answer.status_code == 400
    assert server.http.get("/healthz").status_code == 200


@pytest.mark.parametrize("content_type", ["Application/JSON", "application/json; charset=utf-8"])
def test_json_is_json_in_every_spelling(server: Server, content_type: str) -> None:
    body = json.dumps(spawn_body("edge")).encode()
    headers = {"Content-Type": content_type}
    assert (
        server.http.request("POST", "/v1/spawns", headers=headers, content=body).status_code == 201
    )


@pytest.mark.parametrize("seconds", ["-1e300", "0.4", "1e308", "9007199254740993"])
def test_timeout_may_be_any_number(server: Server, seconds: str) -> None:
    run = server.announced(session="edge", runTimeoutSeconds=float(seconds))
    assert run["outcome"] == "success"
    assert (run["runTimeoutSeconds"] == 0) is (float(seconds) < 1)


def test_thread_id_may_be_large_number(server: Server) -> None:
    for number, status in (("18446744073709551615", 201), ("9" * 400, 422)):
        body = b'{"requester": {"sessionKey": "edge", "threadId": %s}, "task": "x"}'
        assert post_bytes(server, body % number.encode()).status_code in (status, 400)


JSON_TYPE = ("Content-Type", "application/json")


@pytest.mark.parametrize(
    ("method", "target", "name"),
    [
        ("POST", "/v1/runs/x/stop", "Idempotency-Key"),
        ("PATCH", "/v1/sessions/agent:main:main/shared-context", "If-Match"),
        ("GET", "/v1/events", "Last-Event-ID"),
    ],
)
def test_header_given_twice_is_refused(server: Server, method: str, target: str, name: str) -> None:
    headers = [JSON_TYPE, ("Accept", EVENTS), (name, '"1"'), (name, '"2"')]
    content = b"" if method == "GET" else b"{}"
    answer = server.http.request(method, target, headers=headers, content=content)
    assert pointers_of(problem_of(answer, 422, "invalid_request")) == [f"/headers/{name}"]


def test_key_counts_for_one_session_whatever_its_escapes(server: Server) -> None:
    sessions = {"agent:main:a%3Fb": "agent:main:a?b", "agent:main:a%253Fb": "agent:main:a%3fb"}
    key = ("Idempotency-Key", a_key())
    for session in sessions.values():
        server.accepted(session=session)
    for part, session in sessions.items():
        target = f"/v1/sessions/{part}/stop"
        answer = server.http.request("POST", target, headers=[JSON_TYPE, key], content=b"{}")
        assert answer.json()["sessionKey"] == session
        assert not replayed(answer)


@pytest.mark.parametrize("value", ["[]", '"\\""'])
def test_body_of_countless_values_is_refused_at_once(
    server: Server, unrecorded: str, value: str
) -> None:
    values = "[" + f"{value}," * (14_000_000 // (len(value) + 1)) + "0]"
    text = json.dumps(spawn_body(unrecorded, attachments="MARK")).replace('"MARK"', values)
    began = time.monotonic()
    problem = problem_of(post_bytes(server, text.encode()), 400, "malformed_json")
    assert "values" in problem["detail"]
    assert time.monotonic() - began < 4


def test_commas_and_quotes_of_text_are_not_counted(server: Server) -> None:
    task = 'one, "two", three\\\n' * 20_000
    assert server.announced(session=server.new_session(), task=task)["task"] == task


def test_task_of_two_mebibytes_runs(server: Server) -> None:
    task = "ä" * MIB
    run = server.announced(session=server.new_session(), task=task)
    assert run["outcome"] == "success"
    assert run["task"] == task
    assert task in server.get(f"/v1/runs/{run['runId']}/prompt")["message"]


def test_body_without_length_is_counted_as_it_comes(server: Server, unrecorded: str) -> None:
    made = json.dumps(spawn_body(unrecorded, task="x" * 20 * MIB)).encode()
    chunks = (made[start : start + MIB] for start in range(0, len(made), MIB))
    answer = server.http.post(
        "/v1/spawns", content=chunks, headers={"Content-Type": "application/json"}
    )
    problem_of(answer, 413, "too_large")
    assert server.http.get("/healthz").status_code == 200


def test_declared_length_is_believed_before_the_body(server: Server, unrecorded: str) -> None:
    sent = spawn_head(server, Content_Length=str(20 * MIB))
    problem_of(exchange(server.url, sent), 413, "too_large")


@pytest.mark.parametrize("connection", ["close", "keep-alive"])
@pytest.mark.parametrize("declared", [True, False])
def test_caller_that_sends_all_first_is_answered(
    server: Server, unrecorded: str, connection: str, declared: bool
) -> None:
    made = json.dumps(spawn_body(unrecorded, task="x" * 20 * MIB)).encode()
    if declared:
        sent = spawn_head(server, Connection=connection, Content_Length=str(len(made)))
    else:
        sent = spawn_head(server, Connection=connection, Transfer_Encoding="chunked")
        made = b"%x\r\n%b\r\n0\r\n\r\n" % (len(made), made)
    with Authority.of(server.url).connect() as wire:
        wire.sendall(sent + made)
        answer = answer_on(wire)
        problem_of(answer, 413, "too_large")
        assert answer.headers["connection"] == "close"
        assert wire.recv(1) == b""


def test_body_over_discard_limit_is_refused_at_once(server: Server, unrecorded: str) -> None:
    with Authority.of(server.url).connect() as wire:
        began = time.monotonic()
        wire.sendall(spawn_head(server, Content_Length=str(DISCARDED_BYTES_MAX + 1)))
        problem_of(answer_on(wire), 413, "too_large")
        assert wire.recv(1) == b""
        assert time.monotonic() - began < DISCARD_SECONDS_MAX / 2


def test_missing_rest_of_body_is_waited_for_briefly(server: Server, unrecorded: str) -> None:
    sent = spawn_head(server, Content_Length=str(DISCARDED_BYTES_MAX))
    with Authority.of(server.url).connect() as wire:
        began = time.monotonic()
        wire.sendall(sent + bytes(MIB))
        problem_of(answer_on(wire), 413, "too_large")
        assert time.monotonic() - began < DISCARD_SECONDS_MAX / 2
        assert wire.recv(1) == b""
        assert time.monotonic() - began < DISCARD_SECONDS_MAX * 3


def test_caller_that_leaves_in_its_body_is_no_error(server: Server, unrecorded: str) -> None:
    made = json.dumps(spawn_body(unrecorded)).encode()
    sent = spawn_head(server, Content_Length=str(len(made) + 1))
    log_before = server.log()
    with Authority.of(server.url).connect() as connection:
        connection.sendall(sent + made)
    assert server.http.get("/healthz").status_code == 200
    assert server.log() == log_before

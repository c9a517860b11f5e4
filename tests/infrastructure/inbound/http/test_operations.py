"""Every operation behaves as its row says: faults, tokens, moments, pages, keys, versions."""

import base64
import json
import re
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from starlette.routing import Route

from application.queries.operation import Operation, Read
from infrastructure.inbound.http.application import HttpApplication
from infrastructure.inbound.http.operations import OPERATIONS
from infrastructure.inbound.http.requests.endpoint import OperationRoute, query_fields
from infrastructure.outbound.configuration.load import load
from infrastructure.outbound.identity.data_directory import DataDirectory
from infrastructure.server.compose import ServerProcess
from infrastructure.server.database import open_database
from tests.support.http.faulty_requests import FaultyRequest, faulty_requests, unlimited_values
from tests.support.http.operations import path_of, request_of
from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.requests import a_key, replayed, request_head
from tests.support.http.wire import client_of, exchange
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

WITH_TOKEN = [operation for operation in OPERATIONS if operation.token]
READING = [
    operation
    for operation in OPERATIONS
    if operation.query is not None and "query" in operation.takes
]
LIMITED_BY_RULE = {
    "spawn": {
        "/attachAs/mountPath",
        "/attachments/0/content",
        "/contextPreamble",
        "/requester/threadId",
        "/runTimeoutSeconds",
        "/task",
        "/task/0",
    },
    "sendMessage": {"/message"},
    "writePreamble": {"/preamble"},
    "reportTranscript": {"/entries/0/text"},
    "provideTranscript": {"/entries/0/text"},
    "whatIf": {"/filter/agentId/0"},
}
"""Values whose limit is in bytes, or is checked by a rule."""
WORDS_OF_THE_LIBRARY = re.compile(
    r"\w+ should \w+ \w+ \w+|Value error|unable to|[Ii]nvalid \w+ tag"
)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
METHODS_OF: dict[str, set[str]] = defaultdict(set)
for described in OPERATIONS:
    METHODS_OF[described.path].add(described.method)


def wrong_answer(server: Server, operation: Operation, faulty: FaultyRequest) -> str | None:
    """Return the fault of the answer to a faulty request, or None."""
    query = f"?{httpx2.QueryParams([*faulty.params])}" if faulty.params else ""
    # A client would mend a wrong Content-Length.
    headers = {"Host": "127.0.0.1", "Content-Length": str(len(faulty.content)), **faulty.headers}
    target = request_head(server, faulty.path + query, *headers.items(), method=operation.method)
    answer = exchange(server.url, target, faulty.content)
    if answer.is_success:
        return f"{faulty.fault}: accepted with {answer.status_code}"
    # Not `problem_of`, which needs a position: the log may be too busy to return one in time.
    problem = answer.json()
    words = WORDS_OF_THE_LIBRARY.search(answer.text)
    if words is not None:
        return f"{faulty.fault}: says {words[0]}"
    found = (answer.status_code, problem["code"], tuple(dict.fromkeys(pointers_of(problem))))
    expected = (faulty.status, faulty.code, faulty.pointers)
    return None if found == expected else f"{faulty.fault}: {found}, not {expected}"


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_faulty_request_is_refused_with_its_place(
    server: Server, names: dict[str, str], operation: Operation
) -> None:
    requests = list(faulty_requests(operation, names))
    wrong = [wrong_answer(server, operation, request) for request in requests]
    assert not any(wrong), "\n".join(item for item in wrong if item)
    runs = [run["runId"] for key in ("x", names["key"]) for run in server.runs(requester=key)]
    assert runs == [names["runId"]]


@pytest.mark.parametrize("operation", WITH_TOKEN, ids=lambda operation: operation.name)
def test_operation_without_good_token_is_refused(
    server: Server, names: dict[str, str], operation: Operation
) -> None:
    target = path_of(operation, names)
    for token in (None, "wrong"):
        with client_of(server.url, token) as client:
            answer = client.request(operation.method, f"{target}?unknown=1", content=b"{")
        problem_of(answer, 401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", METHODS_OF)
def test_method_that_path_lacks_is_told_the_others(
    server: Server, names: dict[str, str], path: str
) -> None:
    (operation, *_) = [operation for operation in OPERATIONS if operation.path == path]
    for method in sorted(set(METHODS) - METHODS_OF[path]):
        answer = server.http.request(method, path_of(operation, names))
        assert answer.status_code == 405, f"{method}: {answer.text}"
        if method != "HEAD":
            problem = problem_of(answer, 405, "method_not_allowed")
            assert f"method {method} is not allowed; allowed: " in problem["detail"]
        assert answer.headers["allow"] == ", ".join(sorted(METHODS_OF[path]))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_value_of_request_has_limit(operation: Operation) -> None:
    lists = {f"/{name}" for name, repeats in query_fields(operation.query).items() if repeats}
    models = [item for item in (operation.query, operation.body) if item is not None]
    found = {item for model in models for item in unlimited_values(model)}
    # A list in a URL is as long as the URL.
    assert found - lists == LIMITED_BY_RULE.get(operation.name, set())


class InnerServer:
    """A server in this process, on the log of another: its routes can be exchanged."""

    def __init__(self, portal: BlockingPortal, server: Server) -> None:
        config = server.config
        assert isinstance(config, Path)
        loaded, directory = load(config), DataDirectory.open(server.data_dir)
        database = open_database(server.conninfo, directory.postgres)
        settings = loaded.configuration.spawnlog
        self._portal = portal
        self._process = ServerProcess(
            loaded, settings, directory, database, config=config, active=None
        )
        services = portal.call(self._process.open, "http://127.0.0.1:1")
        self._application = HttpApplication(services, self._process.models, streams_max=8)
        self._headers = [
            (b"host", b"127.0.0.1"),
            (b"authorization", f"Bearer {server.token}".encode()),
        ]

    def close(self) -> None:
        self._portal.call(self._process.drain)
        self._portal.call(self._process.close)

    def status_of(self, route: Route, path_params: Mapping[str, str], query: str) -> int:
        """Ask a route that need not be one of the application. Return the status."""
        statuses: list[int] = []
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": route.path,
            "raw_path": route.path.encode(),
            "query_string": query.encode(),
            "headers": self._headers,
            "app": self._application,
            "path_params": path_params,
        }

        async def receive() -> Any:
            return {"type": "http.request"}

        async def send(message: Any) -> None:
            statuses.append(message.get("status", 0))

        self._portal.call(route.endpoint, scope, receive, send)
        return max(statuses)


@pytest.fixture(scope="module")
def inner(server: Server) -> Iterator[InnerServer]:
    with pytest.MonkeyPatch.context() as patch, start_blocking_portal() as portal:
        for name, secret in server.secrets.items():
            patch.setenv(f"{name.upper()}_TOKEN", secret)
        inner = InnerServer(portal, server)
        yield inner
        inner.close()


@pytest.mark.parametrize("operation", READING, ids=lambda operation: operation.name)
def test_every_parameter_is_read(
    inner: InnerServer, names: dict[str, str], operation: Operation
) -> None:
    assert operation.query is not None
    read = set[str]()

    class Watched(operation.query):  # type: ignore[name-defined,misc]
        def __getattribute__(self, name: str) -> Any:
            read.add(name)
            return super().__getattribute__(name)

    route = OperationRoute(replace(operation, query=Watched))
    query = str(httpx2.QueryParams(request_of(operation, names)["params"]))
    assert inner.status_of(route, names, query) == operation.status
    assert set(operation.query.model_fields) <= read


SCOPE_OF_HANDLER = {
    **dict.fromkeys(["stopRun", "stopSession", "sendMessage"], "control"),
    "acknowledgeAnnouncement": "control",
    **dict.fromkeys(["claimRun", "prolongClaim", "reportTranscript", "endRun"], "worker"),
}
"""Scopes that a handler requires of a caller that may see the resource."""
NEEDED = {
    operation.name: operation.scope or SCOPE_OF_HANDLER.get(operation.name)
    for operation in OPERATIONS
}


@pytest.fixture(scope="module")
def family(server: Server) -> dict[str, Any]:
    """Return runs of one session of the token `reader`, and the position of the first
    announcement.
    """
    key = server.new_session("reader")
    runs = [
        server.announced(session=key, agentId="talker", label=f"child-{number}")
        for number in range(4)
    ]
    then = next(stage["position"] for stage in runs[0]["stages"] if stage["stage"] == "announced")
    names = {"runId": runs[0]["runId"], "id": runs[0]["runId"], "key": key, "revision": "1"}
    return {"names": names, "then": int(then), "runs": runs}


def ask(http: httpx2.Client, name: str, family: Mapping[str, Any], **query: Any) -> httpx2.Response:
    """Ask an operation of the family's first run or of its session."""
    request = request_of(BY_NAME[name], family["names"])
    request["params"] |= QUERIES_OF_FAMILY.get(name, {}) | query
    return http.request(**request)


BY_NAME = {operation.name: operation for operation in OPERATIONS}
QUERIES_OF_FAMILY: dict[str, dict[str, str]] = {"getRunTranscript": {"tools": "true"}}


@pytest.mark.parametrize("name", [name for name, scope in NEEDED.items() if scope])
def test_operation_refuses_token_without_its_scope(
    server: Server, family: dict[str, Any], name: str
) -> None:
    needed = NEEDED[name]
    token = server.secrets["spawner" if needed == "read" else "reader"]
    with server.with_token(token) as http:
        # The scope in the operation table is checked before the parameters are parsed.
        unknown = {"nothing": "x"} if BY_NAME[name].scope else {}
        problem = problem_of(ask(http, name, family, **unknown), 403, "not_permitted")
    assert f'the scope "{needed}"' in problem["detail"]


@pytest.mark.parametrize(
    "name", [request.name for request in READING if "at" in query_fields(request.query)]
)
def test_read_is_as_of_its_position(server: Server, family: dict[str, Any], name: str) -> None:
    then = ask(server.http, name, family, at=f"pos:{family['then']}")
    assert then.status_code == 200, then.text
    assert then.headers["spawnlog-position"] == str(family["then"])
    ahead = ask(server.http, name, family, at=f"pos:{server.head() + 1_000_000}")
    assert pointers_of(problem_of(ahead, 422, "invalid_request")) == ["/query/at"]
    before = ask(server.http, name, family, at="pos:0")
    assert before.headers["spawnlog-position"] == "0"
    if name == "listAgents" or ("{" in BY_NAME[name].path and name != "listAnnouncements"):
        problem_of(before, 404, "not_found")
    else:
        assert before.json().get("items", []) == []


RECENT = [
    request.name
    for request in READING
    if request.query is not None and issubclass(request.query, Read)
]
RECENT.remove("getDiff")  # Its position is the later one of the two that it compares.


@pytest.mark.parametrize("name", RECENT)
def test_read_is_not_behind_position_of_caller(
    server: Server, family: dict[str, Any], name: str
) -> None:
    head = server.head()
    answer = ask(server.http, name, family, minPosition=head)
    assert answer.status_code == 200, answer.text
    assert int(answer.headers["spawnlog-position"]) >= head
    assert answer.headers["spawnlog-log"]
    recorded_at = datetime.fromisoformat(family["runs"][-1]["announcedAt"])
    assert datetime.fromisoformat(answer.headers["spawnlog-clock"]) >= recorded_at


PAGED = [
    request.name for request in READING if {"cursor", "after"} & query_fields(request.query).keys()
]
WITH_CURSOR = [name for name in PAGED if "cursor" in query_fields(BY_NAME[name].query)]


def pages(http: httpx2.Client, name: str, family: Mapping[str, Any], **query: Any) -> list[Any]:
    """Return the pages of an operation up to the last, in the order in which they come."""
    by = "cursor" if name in WITH_CURSOR else "after"
    found: list[Any] = []
    while True:
        answer = ask(http, name, family, **query)
        assert answer.status_code == 200, answer.text
        found.append(answer.json())
        following = found[-1].get("nextCursor", found[-1].get("nextAfter"))
        if following is None or following == found[-1].get("head"):
            return found
        query[by] = following


def items_of(*found: Mapping[str, Any]) -> list[Any]:
    """Return the items of pages; those of a diff by their names, as each page has them by kind."""
    if "items" in found[0]:
        return [item for page in found for item in page["items"]]
    kinds = ("added", "removed", "changed")
    changes = [event for page in found for kind in kinds for event in page[kind]]
    return sorted(changes, key=lambda change: str(change["id"]))


def question_of(server: Server, name: str, family: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a question that has several items and whose answer stays."""
    fields = query_fields(BY_NAME[name].query)
    head = f"pos:{server.head()}"
    query = {"from": f"pos:{family['then'] - 5}", "to": head} if name == "getDiff" else {}
    query |= {"tree": family["names"]["key"]} if "tree" in fields and not query else {}
    return query | ({"at": head} if "at" in fields else {})


@pytest.mark.parametrize("name", PAGED)
def test_small_pages_hold_what_one_large_page_holds(
    server: Server, family: dict[str, Any], name: str
) -> None:
    question = question_of(server, name, family)
    # A server that other tests use has more than a page.
    items = items_of(*pages(server.http, name, family, limit=100, **question))
    assert len(items) > 1 or name == "listRevisions"
    for limit in (1, 3, len(items), len(items) + 1):
        found = pages(server.http, name, family, limit=limit, **question)
        assert all(len(items_of(page)) <= limit for page in found)
        assert items_of(*found) == items


NO_CURSORS = ("x", "é", "%", "e30", "W10", "bnVsbA", "AAAA", "1.x", "².")
CHANGED_PARTS: list[tuple[int, object]] = [
    (2, 10**30), (2, 1e300), (2, -5), (2, "1"), (2, None), (3, -2), (3, 10**18), (3, [1]), (0, 7),
]  # fmt: skip
OTHER_QUESTIONS: dict[str, dict[str, str]] = {
    "listRuns": {"order": "asc"},
    "listTimeline": {"label": "child-1"},
    "findEvents": {"types": "RunStarted"},
    "getDiff": {"from": "pos:0"},
}


@pytest.mark.parametrize("name", OTHER_QUESTIONS)
def test_cursor_is_of_its_log_and_its_question(
    server: Server, family: dict[str, Any], name: str
) -> None:
    question = question_of(server, name, family) | {"limit": 1}
    cursor = str(ask(server.http, name, family, **question).json()["nextCursor"])
    # The cursor of a diff begins with the earlier position.
    before, dot, encoded = cursor.rpartition(".")
    parts = json.loads(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))

    def changed(place: int, value: object) -> str:
        changed_cursor = json.dumps([*parts[:place], value, *parts[place + 1 :]])
        return before + dot + base64.urlsafe_b64encode(changed_cursor.encode()).decode().rstrip("=")

    for wrong in (
        *NO_CURSORS,
        f"9{cursor}",
        *(changed(*changed_part) for changed_part in CHANGED_PARTS),
    ):
        answer = ask(server.http, name, family, **question, cursor=wrong)
        assert (wrong, answer.status_code) == (wrong, 422)
    other_log = ask(server.http, name, family, **question, cursor=changed(0, str(uuid.uuid4())))
    problem_of(other_log, 410, "foreign_cursor")
    second_answer = ask(
        server.http, name, family, **(question | OTHER_QUESTIONS[name]), cursor=cursor
    )
    problem_of(second_answer, 422, "invalid_request")
    assert items_of(ask(server.http, name, family, **question, cursor=cursor).json())


OTHERWISE: dict[str, dict[str, Any]] = {
    "spawn": {"task": "something else"},
    "respawn": {"changes": {"task": "something else"}},
    "stopRun": {"reason": "another"},
    "stopSession": {"reason": "another"},
    "sendMessage": {"message": "something else"},
    "writePreamble": {"preamble": "something else"},
    "provideTranscript": {"totalTokens": 5},
    "acknowledgeAnnouncement": {},
}
"""Members that make a body a different request."""
REFUSED_UNRECORDED = {"yieldSession", "redriveAnnouncement", "redriveAnnouncements"}
"""Operations with nothing to yield or redrive here, whose answer is not stored."""


def test_every_command_is_repeated_under_its_key() -> None:
    keyed = {operation.name for operation in OPERATIONS if operation.repeat == "key"}
    assert keyed == {*OTHERWISE, *REFUSED_UNRECORDED}


@pytest.mark.parametrize("name", OTHERWISE)
def test_repeated_key_gives_answer_again(server: Server, family: dict[str, Any], name: str) -> None:
    names = family["names"]
    with server.held(server.new_session()) as held:
        if name in ("stopRun", "stopSession", "sendMessage", "writePreamble"):
            names = {"runId": held.run_id, "key": held.child}
        elif name == "provideTranscript":
            names = {"key": server.new_session()}
        request = request_of(BY_NAME[name], names) | {"headers": {"Idempotency-Key": a_key()}}
        first, again = (server.http.request(**request) for _ in range(2))
        assert first.is_success, first.text
        assert (again.status_code, again.content) == (first.status_code, first.content)
        assert (replayed(first), replayed(again)) == (False, True)
        if OTHERWISE[name]:
            second_answer = server.http.request(
                **request | {"json": request["json"] | OTHERWISE[name]}
            )
            problem_of(second_answer, 422, "idempotency_key_reused")

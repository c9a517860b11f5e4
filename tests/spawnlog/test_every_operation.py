"""Every operation through both clients gives the answer or the problem of HTTP."""

import inspect
import time
from typing import Any

import httpx2
import pytest
from pydantic import TypeAdapter

from application.operations import OPERATIONS
from application.queries.operation import Operation
from generators.client.description import python_name
from infrastructure.inbound.http.openapi import document
from spawnlog import AsyncClient, Client, Problem
from spawnlog.core.answer import read_value
from spawnlog.core.request import LinesRequest, Request
from tests.spawnlog.silent import SilentClient
from tests.support.http.problems import problem_of
from tests.support.http.requests import replayed
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

DOCUMENT = document()
CHANGING = {
    "clearPreamble": "tells whether there was one",
    "getMetrics": "tells of each request",
    "getSummary": "ends now",
    "makePageCode": "makes another code each time",
    "tradePageCode": "uses the code up",
    "startVerification": "begins another one when the first is over",
    "stopVerification": "tells whether one was under way",
}
"""Operations whose second answer differs from the first one, and why."""
SAME_TWICE = [operation for operation in OPERATIONS if operation.name not in CHANGING]
NAMES = {"from": "pos:0", "to": "pos:1", "when": "running > 0", "tree": ["agent:main:main"]}
"""Values of required parameters."""
QUIET_SECONDS_MAX = 20.0
"""Longest wait for a moment in which nothing happens on the server."""


@pytest.fixture(scope="module")
def run(server: Server) -> dict[str, Any]:
    return server.announced(
        session=server.new_session(), agentId="talker", cleanup="keep", label="lived"
    )


def arguments(operation: Operation, run: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a method: its required ones, and the example of its body."""
    method = getattr(Client, python_name(operation.name))
    described = DOCUMENT["paths"][operation.path][operation.method.lower()]
    known = {
        **NAMES,
        "runId": run["runId"],
        "id": run["runId"],
        "key": run["childSessionKey"],
        "with": run["runId"],
        "revision": 1,
    }
    if operation.name == "acknowledgeAnnouncement":
        known["key"] = run["requesterSessionKey"]
    elif operation.name == "provideTranscript":
        known["key"] = f"agent:main:told-{run['runId']}"
    given = {python_name(name): value for name, value in known.items()}
    if "requestBody" in described:
        body = dict(described["requestBody"]["content"]["application/json"]["example"])
        if operation.name == "patchSharedContext":
            body = {"changes": body}
        given |= {python_name(name): value for name, value in body.items()}
    taken = inspect.signature(method).parameters
    required = {
        name for name, submission in taken.items() if submission.default is inspect.Parameter.empty
    }
    needed = required | ({"when"} if operation.name == "findEvents" else set())
    members = set(given) - {python_name(item) for item in known}
    if "idempotency_key" in taken:
        given["idempotency_key"] = f"{operation.name}-{run['runId']}"
        needed |= {"idempotency_key"}
    return {
        name: value for name, value in given.items() if name in taken and name in needed | members
    }


def http_outcome(server: Server, request: Request[Any]) -> Any:
    answer = server.http.request(
        request.method, request.target, content=request.content, headers=dict(request.headers)
    )
    if not answer.is_success:
        problem = answer.json()
        return problem["code"], problem["detail"]
    if isinstance(request, LinesRequest):
        return [read_value(request.answers, line) for line in answer.content.splitlines()]
    return read_value(request.answers, answer.content)


def plain(value: Any) -> Any:
    return TypeAdapter(Any).dump_python(value, mode="json")


WITH_KEY = [operation for operation in OPERATIONS if operation.repeat == "key"]
NOT_RECORDED = {
    "yieldSession": "cannot_yield",
    "redriveAnnouncement": "no_announcement",
    "redriveAnnouncements": "no_announcement",
}
"""Operations that refuse their request here, and therefore store no answer."""


@pytest.mark.parametrize("operation", WITH_KEY, ids=lambda operation: operation.name)
def test_repeated_key_gets_the_answer_on_record(
    server: Server, run: dict[str, Any], operation: Operation
) -> None:
    given = {**arguments(operation, run), "idempotency_key": f"again-{operation.name}"}
    with SilentClient() as silent:
        getattr(silent, python_name(operation.name))(**given)
        (request,) = silent.requests

    def sent(content: bytes) -> httpx2.Response:
        headers = dict(request.headers)
        return server.http.request(request.method, request.target, content=content, headers=headers)

    first, again = sent(request.content), sent(request.content)
    if operation.name in NOT_RECORDED:
        problem_of(first, 409, NOT_RECORDED[operation.name])
        assert not replayed(again)
        return
    assert (replayed(first), replayed(again)) == (False, True)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers.get("location") == first.headers.get("location")
    problem_of(sent(request.content + b" "), 422, "idempotency_key_reused")


async def answers(
    server: Server,
    client: Client,
    operation: Operation,
    given: dict[str, Any],
    request: Request[Any],
) -> tuple[Any, Any, Any]:
    """Return the answers of HTTP and both clients, while nothing else happens on the server."""
    name, is_lines = python_name(operation.name), isinstance(request, LinesRequest)
    until = time.monotonic() + QUIET_SECONDS_MAX
    while time.monotonic() < until:
        expected = http_outcome(server, request)
        try:
            found = getattr(client, name)(**given)
            found = list(found) if is_lines else found
        except Problem as problem:
            found = (problem.code, problem.detail)
        async with AsyncClient(server.url, token=server.token) as second_client:
            try:
                returned = getattr(second_client, name)(**given)
                awaited = [request async for request in returned] if is_lines else await returned
            except Problem as problem:
                awaited = (problem.code, problem.detail)
        if plain(http_outcome(server, request)) == plain(expected):
            break
    return plain(expected), plain(found), plain(awaited)


@pytest.mark.parametrize("operation", SAME_TWICE, ids=lambda operation: operation.name)
async def test_client_gives_the_answer_of_http(
    server: Server, client: Client, run: dict[str, Any], operation: Operation
) -> None:
    given = arguments(operation, run)
    with SilentClient() as silent:
        list(getattr(silent, python_name(operation.name))(**given) or ())
        (request,) = silent.requests
    expected, found, awaited = await answers(server, client, operation, given, request)
    assert found == expected
    assert awaited == expected

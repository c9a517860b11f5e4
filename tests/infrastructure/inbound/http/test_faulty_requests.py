"""Every operation refuses every fault that its row and its models exclude, and says where it is."""

import re
from collections import defaultdict

import pytest

from application.queries.operation import Operation
from infrastructure.inbound.http.operations import OPERATIONS
from infrastructure.inbound.http.requests.endpoint import query_fields
from tests.support.http.faulty_requests import (
    FaultyRequest,
    faulty_requests,
    path_of,
    unlimited_values,
)
from tests.support.http.problems import pointers_of, problem_of
from tests.support.servers.inner_server import InnerServer

pytestmark = pytest.mark.server

WITH_TOKEN = [one for one in OPERATIONS if one.token]
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
"""Values whose limit is in bytes, or is looked at otherwise."""
WORDS_OF_THE_LIBRARY = re.compile(
    r"\w+ should \w+ \w+ \w+|Value error|unable to|[Ii]nvalid \w+ tag"
)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
METHODS_OF: dict[str, set[str]] = defaultdict(set)
for one in OPERATIONS:
    METHODS_OF[one.path].add(one.method)


def wrong_answer(server: InnerServer, operation: Operation, faulty: FaultyRequest) -> str | None:
    """Return what is wrong with the answer to a faulty request."""
    answer = server.request(
        operation.method,
        faulty.path,
        headers=faulty.headers,
        params=faulty.params,
        content=faulty.content,
    )
    if answer.is_success:
        return f"{faulty.fault}: accepted with {answer.status_code}"
    # Not `problem_of`: the log may be too busy to tell a position in time.
    problem = answer.json()
    words = WORDS_OF_THE_LIBRARY.search(answer.text)
    if words is not None:
        return f"{faulty.fault}: says {words[0]}"
    found = (answer.status_code, problem["code"], tuple(dict.fromkeys(pointers_of(problem))))
    expected = (faulty.status, faulty.code, faulty.pointers)
    return None if found == expected else f"{faulty.fault}: {found}, not {expected}"


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_faulty_request_is_refused_with_its_place(
    inner: InnerServer, names: dict[str, str], operation: Operation
) -> None:
    requests = list(faulty_requests(operation, names))
    wrong = [wrong_answer(inner, operation, one) for one in requests]
    assert not any(wrong), "\n".join(one for one in wrong if one)
    runs = [
        one["runId"]
        for requester in ("x", names["key"])
        for one in inner.request("GET", "/v1/runs", params=[("requester", requester)]).json()[
            "items"
        ]
    ]
    assert runs == [names["runId"]]


@pytest.mark.parametrize("operation", WITH_TOKEN, ids=lambda one: one.name)
def test_operation_without_good_token_is_refused(
    inner: InnerServer, names: dict[str, str], operation: Operation
) -> None:
    target = path_of(operation, names)
    for token in ("", "wrong"):
        answer = inner.request(operation.method, f"{target}?unknown=1", token=token, content=b"{")
        problem_of(answer, 401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", METHODS_OF)
def test_method_that_path_lacks_is_told_the_others(
    inner: InnerServer, names: dict[str, str], path: str
) -> None:
    (operation, *_) = [one for one in OPERATIONS if one.path == path]
    for method in sorted(set(METHODS) - METHODS_OF[path]):
        answer = inner.request(method, path_of(operation, names))
        assert answer.status_code == 405, f"{method}: {answer.text}"
        assert answer.headers["allow"] == ", ".join(sorted(METHODS_OF[path]))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_every_value_of_request_has_limit(operation: Operation) -> None:
    lists = {f"/{name}" for name, repeats in query_fields(operation.query).items() if repeats}
    models = [one for one in (operation.query, operation.body) if one is not None]
    found = {one for model in models for one in unlimited_values(model)}
    # A list in a URL is as long as the URL.
    assert found - lists == LIMITED_BY_RULE.get(operation.name, set())

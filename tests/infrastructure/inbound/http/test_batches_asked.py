"""What a request for several runs may look like."""

from typing import Any

import pytest

from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.requests import spawn_body
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server

FILE = [{"name": "a.txt", "content": "x" * 1_000_000}]
WRONG: list[tuple[str, str, dict[str, Any]]] = [
    ("/task", "a list of tasks needs parallel: true", {"task": ["one", "two"]}),
    ("/parallel", "needs a list of tasks", {"parallel": True}),
    ("/task", "has no task", {"task": [], "parallel": True}),
    ("/task/1", "task required", {"task": ["one", " \n"], "parallel": True}),
    ("/task", "has 51 tasks and may have 50", {"task": ["x"] * 51, "parallel": True}),
    ("/task/1", "must be a text", {"task": ["one", ["two"]], "parallel": True}),
    ("/task", "must be a text, or a list of texts", {"task": {"one": 1}}),
    (
        "/label",
        "has 201 characters with its number, and may have 200",
        {"task": ["one", "two"], "parallel": True, "label": "l" * 199},
    ),
    (
        "/attachments",
        "have 1000000 characters, and each of 40 tasks has a copy: 33554432 in all at most. Spawn"
        " with fewer tasks or smaller files",
        {"task": ["one"] * 40, "parallel": True, "attachments": FILE},
    ),
]


@pytest.mark.parametrize(
    ("pointer", "detail", "fields"), WRONG, ids=[f"{one[0]} {one[1]}" for one in WRONG]
)
def test_what_is_no_batch_is_refused_by_name(
    house: House, pointer: str, detail: str, fields: dict[str, Any]
) -> None:
    session = house.session()
    answer = house.http.post("/v1/spawns", json=spawn_body(session, **fields))
    problem = problem_of(answer, 422, "invalid_request")
    assert pointers_of(problem) == [pointer]
    assert problem["detail"] == f"{pointer}: {detail}"
    assert house.runs(session) == []


def test_all_tasks_together_have_a_size(house: House) -> None:
    half = "x" * (4 * 1024 * 1024 + 1)
    session = house.session()
    body = spawn_body(session, task=[half, half], parallel=True)
    problem_of(house.http.post("/v1/spawns", json=body), 413, "too_large")
    assert house.runs(session) == []


def test_a_run_tells_of_its_batch(house: House) -> None:
    session = house.session()
    body = spawn_body(session, task=["one", "two"], parallel=True)
    answer = house.http.post("/v1/spawns", json=body)
    assert answer.status_code == 201, answer.text
    first, second = answer.json()["runs"]
    assert answer.headers["Location"] == f"/v1/runs/{first['runId']}"
    for one in (first, second):
        assert house.server.run(one["runId"])["batchId"] == answer.json()["batchId"]
    alone = house.spawn(house.session()).json()
    assert "batchId" not in alone
    assert house.server.run(alone["runId"])["batchId"] is None

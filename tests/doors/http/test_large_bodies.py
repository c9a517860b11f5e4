"""Bodies that are large, too large, or of too many parts; and those that never come to an end."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.http_house import House
from tests.support.http_problems import problem_of
from tests.support.http_wire import Authority, exchange, head

pytestmark = pytest.mark.slow

MIB = 1024 * 1024


def body(requester: str, **more: Any) -> dict[str, Any]:
    return {"requester": {"sessionKey": requester}, "task": "hello", **more}


@pytest.fixture
def requester(house: House) -> Iterator[str]:
    """A session for which nothing may be recorded."""
    key = house.session("bad-body")
    yield key
    assert house.runs(key) == []
    assert house.http.get(f"/v1/sessions/{key}").status_code == 404


@pytest.mark.parametrize("value", ["[]", "{}", '""', '"\\""', "0"])
def test_a_body_of_countless_values_is_refused_at_once(
    house: House, requester: str, value: str
) -> None:
    values = "[" + f"{value}," * (14_000_000 // (len(value) + 1)) + "0]"
    text = json.dumps(body(requester, attachments="MARK")).replace('"MARK"', values)
    began = time.monotonic()
    problem = problem_of(house.post(text.encode()), 400, "malformed_json")
    assert "values" in problem["detail"]
    assert time.monotonic() - began < 4


def test_commas_and_quotes_in_a_text_are_only_text(house: House) -> None:
    task = 'one, "two", three\\\n' * 20_000
    assert house.ended(house.session(), task=task)["task"] == task


def test_a_task_of_two_mebibytes_runs(house: House) -> None:
    task = "ä" * MIB
    run = house.ended(house.session(), task=task)
    assert run["outcome"] == "success"
    assert run["task"] == task
    assert task in house.http.get(f"/v1/runs/{run['runId']}/prompt").json()["message"]


def test_a_task_of_nine_mebibytes_is_too_large(house: House, requester: str) -> None:
    made = json.dumps(body(requester, task="x" * 9 * MIB)).encode()
    problem_of(house.post(made), 413, "too_large")


def test_a_body_of_twenty_mebibytes_is_too_large(house: House, requester: str) -> None:
    made = json.dumps(body(requester, task="x" * 20 * MIB)).encode()
    problem_of(house.post(made), 413, "too_large")


def test_a_body_without_a_length_is_counted_as_it_comes(house: House, requester: str) -> None:
    made = json.dumps(body(requester, task="x" * 20 * MIB)).encode()
    chunks = (made[start : start + MIB] for start in range(0, len(made), MIB))
    answer = house.http.post(
        "/v1/spawns", content=chunks, headers={"Content-Type": "application/json"}
    )
    problem_of(answer, 413, "too_large")
    assert house.http.get("/healthz").status_code == 200


def test_a_length_that_is_declared_is_believed_before_the_body_comes(
    house: House, requester: str
) -> None:
    headers = {
        "Host": "127.0.0.1",
        "Authorization": f"Bearer {house.server.token}",
        "Content-Type": "application/json",
        "Content-Length": str(20 * MIB),
    }
    problem_of(exchange(house.server.url, head("POST", "/v1/spawns", headers)), 413, "too_large")


def test_a_caller_that_leaves_in_the_middle_of_its_body_leaves_no_error(
    house: House, requester: str
) -> None:
    made = json.dumps(body(requester)).encode()
    headers = {
        "Host": "127.0.0.1",
        "Authorization": f"Bearer {house.server.token}",
        "Content-Type": "application/json",
        "Content-Length": str(len(made) + 1),
    }
    log_before = house.server.log()
    with Authority.of(house.server.url).connect() as connection:
        connection.sendall(head("POST", "/v1/spawns", headers) + made)
    assert house.http.get("/healthz").status_code == 200
    assert house.server.log() == log_before

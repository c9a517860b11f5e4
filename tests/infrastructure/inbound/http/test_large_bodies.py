"""Bodies that are large, too large, or of too many parts; and those that never come to an end."""

import json
import time

import pytest

from infrastructure.inbound.http.middleware.body_limits import (
    DISCARD_SECONDS_MAX,
    DISCARDED_BYTES_MAX,
)
from tests.support.http.problems import problem_of
from tests.support.http.requests import spawn_body, spawn_head
from tests.support.http.wire import Authority, answer_on, exchange
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server

MIB = 1024 * 1024


@pytest.mark.parametrize("value", ["[]", "{}", '""', '"\\""', "0"])
def test_a_body_of_countless_values_is_refused_at_once(
    house: House, unrecorded: str, value: str
) -> None:
    values = "[" + f"{value}," * (14_000_000 // (len(value) + 1)) + "0]"
    text = json.dumps(spawn_body(unrecorded, attachments="MARK")).replace('"MARK"', values)
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


def test_a_body_without_a_length_is_counted_as_it_comes(house: House, unrecorded: str) -> None:
    made = json.dumps(spawn_body(unrecorded, task="x" * 20 * MIB)).encode()
    chunks = (made[start : start + MIB] for start in range(0, len(made), MIB))
    answer = house.http.post(
        "/v1/spawns", content=chunks, headers={"Content-Type": "application/json"}
    )
    problem_of(answer, 413, "too_large")
    assert house.http.get("/healthz").status_code == 200


def test_a_length_that_is_declared_is_believed_before_the_body_comes(
    house: House, unrecorded: str
) -> None:
    sent = spawn_head(house, Content_Length=str(20 * MIB))
    problem_of(exchange(house.server.url, sent), 413, "too_large")


@pytest.mark.parametrize("connection", ["close", "keep-alive"])
@pytest.mark.parametrize("declared", [True, False])
def test_a_caller_that_sends_all_before_it_reads_is_told_so_too(
    house: House, unrecorded: str, connection: str, declared: bool
) -> None:
    made = json.dumps(spawn_body(unrecorded, task="x" * 20 * MIB)).encode()
    if declared:
        sent = spawn_head(house, Connection=connection, Content_Length=str(len(made)))
    else:
        sent = spawn_head(house, Connection=connection, Transfer_Encoding="chunked")
        made = b"%x\r\n%b\r\n0\r\n\r\n" % (len(made), made)
    with Authority.of(house.server.url).connect() as wire:
        wire.sendall(sent + made)
        answer = answer_on(wire)
        problem_of(answer, 413, "too_large")
        assert answer.headers["connection"] == "close"
        assert wire.recv(1) == b""


def test_more_than_would_be_thrown_away_is_refused_at_once(house: House, unrecorded: str) -> None:
    with Authority.of(house.server.url).connect() as wire:
        began = time.monotonic()
        wire.sendall(spawn_head(house, Content_Length=str(DISCARDED_BYTES_MAX + 1)))
        problem_of(answer_on(wire), 413, "too_large")
        assert wire.recv(1) == b""
        assert time.monotonic() - began < DISCARD_SECONDS_MAX / 2


def test_a_rest_that_does_not_come_is_waited_for_no_longer_than_that(
    house: House, unrecorded: str
) -> None:
    sent = spawn_head(house, Content_Length=str(DISCARDED_BYTES_MAX))
    with Authority.of(house.server.url).connect() as wire:
        began = time.monotonic()
        wire.sendall(sent + bytes(MIB))
        problem_of(answer_on(wire), 413, "too_large")
        assert time.monotonic() - began < DISCARD_SECONDS_MAX / 2
        assert wire.recv(1) == b""
        assert time.monotonic() - began < DISCARD_SECONDS_MAX * 3


def test_a_caller_that_leaves_in_the_middle_of_its_body_leaves_no_error(
    house: House, unrecorded: str
) -> None:
    made = json.dumps(spawn_body(unrecorded)).encode()
    sent = spawn_head(house, Content_Length=str(len(made) + 1))
    log_before = house.server.log()
    with Authority.of(house.server.url).connect() as connection:
        connection.sendall(sent + made)
    assert house.http.get("/healthz").status_code == 200
    assert house.server.log() == log_before

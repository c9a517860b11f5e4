"""What the contract has and this release does not serve is refused by name, never ignored."""

from typing import Any

import pytest

from tests.support.http_house import House
from tests.support.http_problems import pointers_of, problem_of
from tests.support.http_requests import spawn_body

pytestmark = pytest.mark.slow

FIELDS: list[tuple[str, dict[str, Any]]] = [
    ("/task", {"task": ["one", "two"]}),
    ("/parallel", {"parallel": True}),
    ("/sharedContext/$research", {"sharedContext": {"goal": "x", "$research": "reference"}}),
    ("/dependsOn", {"dependsOn": ["researcher"]}),
    ("/chainAfter", {"chainAfter": "researcher"}),
]


@pytest.mark.parametrize(("pointer", "fields"), FIELDS, ids=[pointer for pointer, _ in FIELDS])
def test_a_field_that_is_not_served_is_named(
    house: House, pointer: str, fields: dict[str, Any]
) -> None:
    session = house.session()
    answer = house.http.post("/v1/spawns", json=spawn_body(session, **fields))
    problem = problem_of(answer, 422, "not_served_yet")
    assert pointers_of(problem) == [pointer]
    assert pointer in problem["detail"]
    assert house.runs(session) == []


def test_all_that_is_not_served_is_named_at_once(house: House) -> None:
    answer = house.spawn(house.session(), dependsOn=["x"], parallel=True)
    problem = problem_of(answer, 422, "not_served_yet")
    assert sorted(pointers_of(problem)) == ["/dependsOn", "/parallel"]


def test_the_same_fields_with_their_defaults_are_taken(house: House) -> None:
    defaults: dict[str, Any] = {
        "label": None,
        "model": None,
        "thinking": None,
        "runTimeoutSeconds": 0,
        "thread": False,
        "mode": "run",
        "cleanup": "keep",
        "sandbox": "inherit",
        "context": "isolated",
        "lightContext": False,
        "expectsCompletionMessage": True,
        "attachments": [],
        "attachAs": {"mountPath": None},
        "contextPreamble": None,
        "sharedContext": None,
        "sharedContextScope": "family",
        "parallel": False,
        "dependsOn": [],
        "chainAfter": None,
    }
    requester: dict[str, Any] = {
        "sessionKey": house.session(),
        "channel": "telegram",
        "accountId": "a",
        "to": "42",
        "threadId": "7",
        "groupId": None,
        "groupChannel": None,
        "groupSpace": None,
        "memberRoleIds": [],
        "agentIdOverride": None,
        "workspaceDir": None,
        "sandboxed": False,
        "activeModel": None,
        "activeThinking": None,
    }
    answer = house.http.post(
        "/v1/spawns", json={"requester": requester, "task": "hello", **defaults}
    )
    assert answer.status_code == 201, answer.text
    run = house.server.run(answer.json()["runId"])
    expected = {"channel": "telegram", "accountId": "a", "to": "42", "threadId": "7"}
    assert run["requesterOrigin"] == expected


def test_lanes_of_the_past_are_not_served(house: House) -> None:
    problem = problem_of(house.http.get("/v1/lanes?at=pos:1"), 422, "not_served_yet")
    assert pointers_of(problem) == ["/query/at"]


def test_a_session_that_stays_open_is_refused_and_recorded(house: House) -> None:
    session = house.session()
    problem = problem_of(house.spawn(session, mode="session"), 422, "spawn_error")
    assert [run["runId"] for run in house.runs(session)] == [problem["runId"]]

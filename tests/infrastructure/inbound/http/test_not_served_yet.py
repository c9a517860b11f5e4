"""What is not served is refused by name, never ignored; each field of a spawn is served."""

from typing import Any

import pytest

from tests.support.http.problems import problem_of
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server


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


def test_a_session_that_stays_open_is_refused_and_recorded(house: House) -> None:
    session = house.session()
    problem = problem_of(house.spawn(session, mode="session"), 422, "spawn_error")
    assert [run["runId"] for run in house.runs(session)] == [problem["runId"]]

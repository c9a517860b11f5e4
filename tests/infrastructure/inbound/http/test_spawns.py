"""What a request says of its requester, its child and its folder; what is not served is refused."""

import uuid
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.http.problems import problem_of
from tests.support.http.requests import spawn_body
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server


WOULD_ESCAPE = (
    "Sandboxed sessions cannot spawn unsandboxed subagents. "
    "Set a sandboxed target agent or use the same agent runtime."
)


def spawn_for(house: House, requester: dict[str, Any], **body: Any) -> httpx2.Response:
    return house.http.post("/v1/spawns", json={"requester": requester, "task": "hello", **body})


def require_refused(answer: httpx2.Response, text: str) -> None:
    problem = problem_of(answer, 403, "spawn_forbidden")
    assert (problem["rule"], problem["detail"]) == ("sandbox", text)
    assert problem["runId"]


def require_accepted(house: House, answer: httpx2.Response) -> dict[str, Any]:
    assert answer.status_code == 201, answer.text
    return house.server.run(answer.json()["runId"])


def test_a_requester_that_says_it_is_in_a_sandbox_spawns_nobody_outside(house: House) -> None:
    key = house.session()
    requester = {"sessionKey": key, "sandboxed": True}
    require_refused(spawn_for(house, requester), WOULD_ESCAPE)
    require_refused(spawn_for(house, requester, sandbox="require"), WOULD_ESCAPE)
    # It is on record by now, and the request need not say it again.
    require_refused(house.spawn(key), WOULD_ESCAPE)
    assert (
        require_accepted(house, spawn_for(house, requester, agentId="boxed"))["sandboxed"] is True
    )


def test_a_child_works_in_the_folder_that_its_requester_names(house: House) -> None:
    folder = folder_of(house, "named by a request")
    requester = {"sessionKey": house.session(), "workspaceDir": str(folder)}
    run = require_accepted(house, spawn_for(house, requester))
    assert run["workspaceDir"] == str(folder)
    another = require_accepted(house, spawn_for(house, requester, agentId="talker"))
    assert another["workspaceDir"] != str(folder)
    events = house.get(f"/v1/runs/{run['runId']}/events", limit=1)["items"]
    assert set(events[0]["payload"]["workspaceArgument"]) >= {"id", "bytes"}
    assert str(folder) not in str(events)


def folder_of(house: House, name: str) -> Path:
    """A folder in the one of the requester's agent."""
    folder = house.server.data_dir / "workspaces" / "main" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def test_a_folder_below_no_root_is_refused_whether_it_is_there_or_not(house: House) -> None:
    for folder in ("/etc", "/is-not-there", f"{folder_of(house, 'x')}/../../../.."):
        requester = {"sessionKey": house.session(), "workspaceDir": folder}
        problem = problem_of(spawn_for(house, requester), 422, "spawn_error")
        assert problem["rule"] == "workspace"
        assert problem["detail"] == (
            "The workspace that the request names is not below a configured root. Add its root to "
            "spawnlog.workspaceRoots, or leave workspaceDir out."
        )


@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_folder_is_none(house: House, blank: str) -> None:
    run = require_accepted(
        house, spawn_for(house, {"sessionKey": house.session(), "workspaceDir": blank})
    )
    assert Path(run["workspaceDir"]).name == "main"


def spawn_in(house: House, key: str, folder: Path | None, **body: Any) -> httpx2.Response:
    requester = {"sessionKey": key, "workspaceDir": str(folder) if folder else None}
    return house.http.post("/v1/spawns", json={"requester": requester, "task": "hello", **body})


def make_workspace(house: House, name: str, agent_id: str = "main") -> Path:
    folder = house.server.data_dir.resolve() / "workspaces" / agent_id / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_the_caller_is_told_of_a_folder_that_is_not_used(house: House) -> None:
    folder = make_workspace(house, "dropped")
    answer = spawn_in(house, house.session(), folder, agentId="talker")
    assert answer.status_code == 201, answer.text
    (warning,) = answer.json()["warnings"]
    assert warning.startswith("The workspaceDir of the request was not used: the child is of agent")
    run = house.server.run(answer.json()["runId"])
    assert run["warnings"] == [warning]
    events = house.events(run["runId"])
    assert str(folder) not in str(events)


def test_the_folder_of_another_agent_is_refused(house: House) -> None:
    other = house.server.data_dir / "workspaces" / "talker"
    other.mkdir(parents=True, exist_ok=True)
    for folder in (other, other.parent):
        problem = problem_of(spawn_in(house, house.session(), folder), 422, "spawn_error")
        assert problem["rule"] == "workspace"


def test_a_link_in_place_of_the_folder_on_record_is_refused(house: House) -> None:
    folder = make_workspace(house, "replaced", "holder")
    parent = spawn_in(house, f"agent:holder:{uuid.uuid4().hex}", folder)
    assert parent.status_code == 201, parent.text
    run_id, child = parent.json()["runId"], parent.json()["childSessionKey"]
    house.gates.wait(run_id)
    try:
        folder.rename(folder.with_name("away"))
        folder.symlink_to(house.server.data_dir)
        for below in (None, folder / "workspaces"):
            problem = problem_of(spawn_in(house, child, below), 422, "spawn_error")
            assert problem["rule"] == "workspace"
            assert "Put the folder back in the place of the link" in problem["detail"]
        folder.unlink()
        folder.with_name("away").rename(folder)
        again = spawn_in(house, child, None).json()["runId"]
        house.gates.open(again)
        assert house.server.run(again, "ended")["workspaceDir"] == str(folder)
    finally:
        house.gates.open(run_id)
        house.server.run(run_id, "ended")


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

"""What a request says of its requester, its child and its folder."""

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
NO_ROOT = (
    "The workspace that the request names is not below a configured root. Add its root to "
    "spawnlog.workspaceRoots, or leave workspaceDir out."
)


def spawn(house: House, requester: dict[str, Any], **body: Any) -> httpx2.Response:
    whole = {"sessionKey": house.session(), **requester}
    return house.http.post("/v1/spawns", json={"requester": whole, "task": "hello", **body})


def accepted_run(house: House, answer: httpx2.Response) -> dict[str, Any]:
    assert answer.status_code == 201, answer.text
    return house.server.run(answer.json()["runId"])


def workspace_of(house: House, agent_id: str, name: str = "") -> Path:
    """Return a folder in the one of an agent."""
    folder = house.server.data_dir.resolve() / "workspaces" / agent_id / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_sandboxed_requester_spawns_nobody_outside(house: House) -> None:
    requester = {"sessionKey": house.session(), "sandboxed": True}
    on_record = {"sessionKey": requester["sessionKey"]}
    for answer in (
        spawn(house, requester),
        spawn(house, requester, sandbox="require"),
        # It is on record by now, and the request need not say it again.
        spawn(house, on_record),
    ):
        problem = problem_of(answer, 403, "spawn_forbidden")
        assert (problem["rule"], problem["detail"]) == ("sandbox", WOULD_ESCAPE)
        assert problem["runId"]
    assert accepted_run(house, spawn(house, requester, agentId="boxed"))["sandboxed"] is True


def test_child_works_in_folder_of_requester(house: House) -> None:
    folder = workspace_of(house, "main", "named by a request")
    requester = {"workspaceDir": str(folder)}
    run = accepted_run(house, spawn(house, requester))
    assert run["workspaceDir"] == str(folder)
    (requested,) = house.events(run["runId"], "SpawnRequested")
    assert set(requested["payload"]["workspaceArgument"]) >= {"id", "bytes"}
    answer = spawn(house, requester, agentId="talker")
    other = accepted_run(house, answer)
    assert other["workspaceDir"] != str(folder)
    (warning,) = answer.json()["warnings"]
    assert warning.startswith("The workspaceDir of the request was not used: the child is of agent")
    assert other["warnings"] == [warning]
    assert str(folder) not in str([requested, *house.events(other["runId"])])
    blank = accepted_run(house, spawn(house, {"workspaceDir": "  "}))
    assert Path(blank["workspaceDir"]).name == "main"


def test_folder_below_no_root_is_refused(house: House) -> None:
    own, other = workspace_of(house, "main"), workspace_of(house, "talker")
    for folder in ("/etc", "/is-not-there", f"{own}/../../../.."):
        problem = problem_of(spawn(house, {"workspaceDir": folder}), 422, "spawn_error")
        assert (problem["rule"], problem["detail"]) == ("workspace", NO_ROOT)
    for folder in (str(other), str(other.parent)):
        problem = problem_of(spawn(house, {"workspaceDir": folder}), 422, "spawn_error")
        assert problem["rule"] == "workspace"


def test_link_in_place_of_recorded_folder_is_refused(house: House) -> None:
    folder = workspace_of(house, "holder", "replaced")
    requester = {"sessionKey": f"agent:holder:{uuid.uuid4().hex}", "workspaceDir": str(folder)}
    parent = spawn(house, requester).json()
    house.gates.wait(parent["runId"])
    child = {"sessionKey": parent["childSessionKey"]}
    try:
        folder.rename(folder.with_name("away"))
        folder.symlink_to(house.server.data_dir)
        for below in ({}, {"workspaceDir": str(folder / "workspaces")}):
            problem = problem_of(spawn(house, child | below), 422, "spawn_error")
            assert problem["rule"] == "workspace"
            assert "Put the folder back in the place of the link" in problem["detail"]
        folder.unlink()
        folder.with_name("away").rename(folder)
        again = spawn(house, child).json()["runId"]
        house.gates.open(again)
        assert house.server.run(again, "ended")["workspaceDir"] == str(folder)
    finally:
        house.gates.open(parent["runId"])
        house.server.run(parent["runId"], "ended")


def test_fields_may_have_their_defaults(house: House) -> None:
    requester: dict[str, Any] = {
        "channel": "telegram",
        "accountId": "a",
        "to": "42",
        "threadId": "7",
        "memberRoleIds": [],
        "sandboxed": False,
    }
    unset = ("groupId", "groupChannel", "groupSpace", "agentIdOverride", "workspaceDir")
    requester |= dict.fromkeys((*unset, "activeModel", "activeThinking"))
    defaults: dict[str, Any] = {
        **dict.fromkeys(("label", "model", "thinking", "contextPreamble", "sharedContext")),
        **dict.fromkeys(("thread", "lightContext", "parallel"), False),
        "chainAfter": None,
        "runTimeoutSeconds": 0,
        "mode": "run",
        "cleanup": "keep",
        "sandbox": "inherit",
        "context": "isolated",
        "expectsCompletionMessage": True,
        "attachments": [],
        "attachAs": {"mountPath": None},
        "sharedContextScope": "family",
        "dependsOn": [],
    }
    run = accepted_run(house, spawn(house, requester, **defaults))
    origin = {"channel": "telegram", "accountId": "a", "to": "42", "threadId": "7"}
    assert run["requesterOrigin"] == origin


def test_session_that_stays_open_is_refused(house: House) -> None:
    session = house.session()
    problem = problem_of(house.spawn(session, mode="session"), 422, "spawn_error")
    assert [run["runId"] for run in house.runs(session)] == [problem["runId"]]


def test_run_names_its_batch(house: House) -> None:
    body = spawn_body(house.session(), task=["one", "two"], parallel=True)
    answer = house.http.post("/v1/spawns", json=body)
    assert answer.status_code == 201, answer.text
    batch = answer.json()
    assert answer.headers["Location"] == f"/v1/runs/{batch['runs'][0]['runId']}"
    for one in batch["runs"]:
        assert house.server.run(one["runId"])["batchId"] == batch["batchId"]
    alone = house.accepted(house.session())
    assert "batchId" not in alone
    assert house.server.run(alone["runId"])["batchId"] is None

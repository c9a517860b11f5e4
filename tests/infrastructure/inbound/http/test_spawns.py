"""Requester, child and folder in a spawn request."""

import uuid
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.http.problems import problem_of
from tests.support.http.requests import spawn_body
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

WOULD_ESCAPE = (
    "Sandboxed sessions cannot spawn unsandboxed subagents. "
    "Set a sandboxed target agent or use the same agent runtime."
)
NO_ROOT = (
    "The workspace that the request names is not below a configured root. Add its root to "
    "spawnlog.workspaceRoots, or leave workspaceDir out."
)


def spawn(server: Server, requester: dict[str, Any], **body: Any) -> httpx2.Response:
    whole = {"sessionKey": server.new_session(), **requester}
    return server.http.post("/v1/spawns", json={"requester": whole, "task": "hello", **body})


def accepted_run(server: Server, answer: httpx2.Response) -> dict[str, Any]:
    assert answer.status_code == 201, answer.text
    return server.run(answer.json()["runId"])


def workspace_of(server: Server, agent_id: str, name: str = "") -> Path:
    """Return a folder in an agent's workspace."""
    folder = server.data_dir.resolve() / "workspaces" / agent_id / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_sandboxed_requester_spawns_nobody_outside(server: Server) -> None:
    requester = {"sessionKey": server.new_session(), "sandboxed": True}
    on_record = {"sessionKey": requester["sessionKey"]}
    for answer in (
        spawn(server, requester),
        spawn(server, requester, sandbox="require"),
        # It is on record by now, and the request need not say it again.
        spawn(server, on_record),
    ):
        problem = problem_of(answer, 403, "spawn_forbidden")
        assert (problem["rule"], problem["detail"]) == ("sandbox", WOULD_ESCAPE)
        assert problem["runId"]
    assert accepted_run(server, spawn(server, requester, agentId="boxed"))["sandboxed"] is True


def test_child_works_in_folder_of_requester(server: Server) -> None:
    folder = workspace_of(server, "main", "named by a request")
    requester = {"workspaceDir": str(folder)}
    run = accepted_run(server, spawn(server, requester))
    assert run["workspaceDir"] == str(folder)
    (requested,) = server.recorded(run["runId"], "SpawnRequested")
    assert set(requested["payload"]["workspaceArgument"]) >= {"id", "bytes"}
    answer = spawn(server, requester, agentId="talker")
    second_run = accepted_run(server, answer)
    assert second_run["workspaceDir"] != str(folder)
    (warning,) = answer.json()["warnings"]
    assert warning.startswith("The workspaceDir of the request was not used: the child is of agent")
    assert second_run["warnings"] == [warning]
    assert str(folder) not in str([requested, *server.recorded(second_run["runId"])])
    blank = accepted_run(server, spawn(server, {"workspaceDir": "  "}))
    assert Path(blank["workspaceDir"]).name == "main"


def test_folder_below_no_root_is_refused(server: Server) -> None:
    own, target = workspace_of(server, "main"), workspace_of(server, "talker")
    for folder in ("/etc", "/is-not-there", f"{own}/../../../.."):
        problem = problem_of(spawn(server, {"workspaceDir": folder}), 422, "spawn_error")
        assert (problem["rule"], problem["detail"]) == ("workspace", NO_ROOT)
    for folder in (str(target), str(target.parent)):
        problem = problem_of(spawn(server, {"workspaceDir": folder}), 422, "spawn_error")
        assert problem["rule"] == "workspace"


def test_link_in_place_of_recorded_folder_is_refused(server: Server) -> None:
    folder = workspace_of(server, "holder", "replaced")
    requester = {"sessionKey": f"agent:holder:{uuid.uuid4().hex}", "workspaceDir": str(folder)}
    parent = spawn(server, requester).json()
    server.began(parent["runId"])
    child = {"sessionKey": parent["childSessionKey"]}
    try:
        folder.rename(folder.with_name("away"))
        folder.symlink_to(server.data_dir)
        for below in ({}, {"workspaceDir": str(folder / "workspaces")}):
            problem = problem_of(spawn(server, child | below), 422, "spawn_error")
            assert problem["rule"] == "workspace"
            assert "Replace the link with the folder" in problem["detail"]
        folder.unlink()
        folder.with_name("away").rename(folder)
        again = spawn(server, child).json()["runId"]
        server.let_go(again)
        assert server.run(again, "ended")["workspaceDir"] == str(folder)
    finally:
        server.let_go(parent["runId"])
        server.run(parent["runId"], "ended")


def test_fields_may_have_their_defaults(server: Server) -> None:
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
    run = accepted_run(server, spawn(server, requester, **defaults))
    origin = {"channel": "telegram", "accountId": "a", "to": "42", "threadId": "7"}
    assert run["requesterOrigin"] == origin


def test_session_that_stays_open_is_refused(server: Server) -> None:
    session = server.new_session()
    problem = problem_of(server.spawn(session=session, mode="session"), 422, "spawn_error")
    assert [run["runId"] for run in server.runs(requester=session)] == [problem["runId"]]


def test_run_names_its_batch(server: Server) -> None:
    body = spawn_body(server.new_session(), task=["one", "two"], parallel=True)
    answer = server.http.post("/v1/spawns", json=body)
    assert answer.status_code == 201, answer.text
    batch = answer.json()
    assert answer.headers["Location"] == f"/v1/runs/{batch['runs'][0]['runId']}"
    for run in batch["runs"]:
        assert server.run(run["runId"])["batchId"] == batch["batchId"]
    alone = server.spawned(session=server.new_session())
    assert "batchId" not in alone
    assert server.run(alone["runId"])["batchId"] is None

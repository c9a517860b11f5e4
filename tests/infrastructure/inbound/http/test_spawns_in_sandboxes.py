"""What a request says of its requester's sandbox and folder, and what it asks for its child."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.http.problems import problem_of
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server

WOULD_ESCAPE = (
    "Sandboxed sessions cannot spawn unsandboxed subagents. "
    "Set a sandboxed target agent or use the same agent runtime."
)


def spawned(house: House, requester: dict[str, Any], **body: Any) -> httpx2.Response:
    return house.http.post("/v1/spawns", json={"requester": requester, "task": "hello", **body})


def refused(answer: httpx2.Response, text: str) -> None:
    problem = problem_of(answer, 403, "spawn_forbidden")
    assert (problem["rule"], problem["detail"]) == ("sandbox", text)
    assert problem["runId"]


def accepted(house: House, answer: httpx2.Response) -> dict[str, Any]:
    assert answer.status_code == 201, answer.text
    return house.server.run(answer.json()["runId"])


def test_a_requester_that_says_it_is_in_a_sandbox_spawns_nobody_outside(house: House) -> None:
    key = house.session()
    requester = {"sessionKey": key, "sandboxed": True}
    refused(spawned(house, requester), WOULD_ESCAPE)
    refused(spawned(house, requester, sandbox="require"), WOULD_ESCAPE)
    # It is on record by now, and the request need not say it again.
    refused(house.spawn(key), WOULD_ESCAPE)
    assert accepted(house, spawned(house, requester, agentId="boxed"))["sandboxed"] is True


def test_a_child_works_in_the_folder_that_its_requester_names(house: House) -> None:
    folder = folder_of(house, "named by a request")
    requester = {"sessionKey": house.session(), "workspaceDir": str(folder)}
    run = accepted(house, spawned(house, requester))
    assert run["workspaceDir"] == str(folder)
    another = accepted(house, spawned(house, requester, agentId="talker"))
    assert another["workspaceDir"] != str(folder)
    events = house.http.get(f"/v1/runs/{run['runId']}/events", params={"limit": 1}).json()["items"]
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
        problem = problem_of(spawned(house, requester), 422, "spawn_error")
        assert problem["rule"] == "workspace"
        assert problem["detail"] == (
            "The workspace that the request names is not below a configured root. Add its root to "
            "spawnlog.workspaceRoots, or leave workspaceDir out."
        )


@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_folder_is_none(house: House, blank: str) -> None:
    run = accepted(house, spawned(house, {"sessionKey": house.session(), "workspaceDir": blank}))
    assert Path(run["workspaceDir"]).name == "main"

"""Folders that a request names for its requester, and what becomes of them."""

import uuid
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.http.problems import problem_of
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server


def named(house: House, key: str, folder: Path | None, **body: Any) -> httpx2.Response:
    requester = {"sessionKey": key, "workspaceDir": str(folder) if folder else None}
    return house.http.post("/v1/spawns", json={"requester": requester, "task": "hello", **body})


def made(house: House, name: str, agent_id: str = "main") -> Path:
    folder = house.server.data_dir.resolve() / "workspaces" / agent_id / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_the_caller_is_told_of_a_folder_that_is_not_used(house: House) -> None:
    folder = made(house, "dropped")
    answer = named(house, house.session(), folder, agentId="talker")
    assert answer.status_code == 201, answer.text
    (warning,) = answer.json()["warnings"]
    assert warning.startswith("The workspaceDir of the request was not used: the child is of agent")
    run = house.server.run(answer.json()["runId"])
    assert run["warnings"] == [warning]
    events = house.http.get(f"/v1/runs/{run['runId']}/events").json()["items"]
    assert str(folder) not in str(events)


def test_the_folder_of_another_agent_is_refused(house: House) -> None:
    other = house.server.data_dir / "workspaces" / "talker"
    other.mkdir(parents=True, exist_ok=True)
    for folder in (other, other.parent):
        problem = problem_of(named(house, house.session(), folder), 422, "spawn_error")
        assert problem["rule"] == "workspace"


def test_a_link_in_place_of_the_folder_on_record_is_refused(house: House) -> None:
    folder = made(house, "replaced", "holder")
    parent = named(house, f"agent:holder:{uuid.uuid4().hex}", folder)
    assert parent.status_code == 201, parent.text
    run_id, child = parent.json()["runId"], parent.json()["childSessionKey"]
    house.gates.wait(run_id)
    try:
        folder.rename(folder.with_name("away"))
        folder.symlink_to(house.server.data_dir)
        for below in (None, folder / "workspaces"):
            problem = problem_of(named(house, child, below), 422, "spawn_error")
            assert problem["rule"] == "workspace"
            assert "Put the folder back in the place of the link" in problem["detail"]
        folder.unlink()
        folder.with_name("away").rename(folder)
        again = named(house, child, None).json()["runId"]
        house.gates.open(again)
        assert house.server.run(again, "ended")["workspaceDir"] == str(folder)
    finally:
        house.gates.open(run_id)
        house.server.run(run_id, "ended")

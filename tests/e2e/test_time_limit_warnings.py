"""A time limit that is rounded or cut is told in the warnings of the answer, at every door."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.http.mcp import McpCaller
from tests.support.servers.configurations import agent, configuration
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

SECONDS_MAX = 2_147_000
CUT = [
    f"A run may take {SECONDS_MAX} seconds at most, which is its limit now; runTimeoutSeconds: 0 is"
    " without limit."
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    config = configuration(agent(default=True), runTimeoutSeconds=3_000_000, maxChildrenPerAgent=20)
    with Server(tmp_path_factory.mktemp("limits") / "data", config) as server:
        yield server


def spawned(server: Server, **body: Any) -> dict[str, Any]:
    return dict(server.spawn("x", **body).json())


def respawned(server: Server, **body: Any) -> dict[str, Any]:
    run_id = spawned(server, runTimeoutSeconds=5)["runId"]
    answer = server.http.post(f"/v1/runs/{run_id}/respawn", json={"changes": body})
    return dict(answer.json())


def called(server: Server, **body: Any) -> dict[str, Any]:
    caller = McpCaller(server.url, server.token)
    return dict(caller.values("sessions_spawn", task="x", **body))


DOORS: tuple[Callable[..., dict[str, Any]], ...] = (spawned, respawned, called)


@pytest.mark.parametrize("door", DOORS)
def test_time_limit_that_is_cut_is_told(
    server: Server, door: Callable[..., dict[str, Any]]
) -> None:
    for seconds in (SECONDS_MAX + 1, 9e99):
        answer = door(server, runTimeoutSeconds=seconds)
        assert answer["warnings"] == answer["runs"][0]["warnings"] == CUT
        run = server.run(answer["runId"])
        assert (run["runTimeoutSeconds"], run["warnings"]) == (SECONDS_MAX, CUT)
    answer = door(server, runTimeoutSeconds=SECONDS_MAX)
    assert answer["warnings"] == []


@pytest.mark.parametrize("door", DOORS)
def test_time_limit_that_is_rounded_to_none_is_told(
    server: Server, door: Callable[..., dict[str, Any]]
) -> None:
    (warning,) = door(server, runTimeoutSeconds=0.5)["warnings"]
    assert warning.startswith("runTimeoutSeconds 0.5 was made 0, which is without limit")


def test_configured_time_limit_that_is_cut_is_told(server: Server) -> None:
    assert spawned(server)["warnings"] == CUT
    assert f"subagents.runTimeoutSeconds: is cut to {SECONDS_MAX}" in server.log()


def test_tasks_of_a_batch_are_each_told(server: Server) -> None:
    body = {"requester": {"sessionKey": "agent:main:main"}, "task": ["a", "b"], "parallel": True}
    answer = server.http.post("/v1/spawns", json={**body, "runTimeoutSeconds": 3e6}).json()
    assert [one["warnings"] for one in answer["runs"]] == [CUT, CUT]

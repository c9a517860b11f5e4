"""Runs that wait for others: shown, queued, ended with their reason, and refused."""

from typing import Any

import pytest

from tests.support.http.problems import problem_of
from tests.support.http.sharing import types
from tests.support.servers.server import Server

pytestmark = pytest.mark.server


def spawn_waiting(server: Server, session: str, *names: str, **body: Any) -> dict[str, Any]:
    """Return a run that waits for those of these labels."""
    accepted = server.spawned(session=session, dependsOn=[*names], **body)
    run = server.run(accepted["runId"])
    assert (run["stage"], run["status"]) == ("session-created", "waiting")
    return run


def test_run_waits_for_all_of_its_dependency(server: Server) -> None:
    session = server.new_session()
    with server.held(session, label="first") as first:
        below = server.spawned(session=first.child, agentId="holder", label="below")
        server.began(below["runId"])
        run = spawn_waiting(server, session, "first", label="second")
        second = run["runId"]
        expected = {"runId": first.run_id, "name": "first", "via": "dependsOn"}
        expected |= {"require": "success", "state": "waiting"}
        assert run["dependsOn"] == [expected]
        for status, found in (("waiting", [second]), ("preparing", []), ("queued", [])):
            items = server.get("/v1/runs", requester=session, status=status)["items"]
            assert [item["runId"] for item in items] == found, status
        assert server.get(f"/v1/sessions/{session}")["activeChildren"] == 2
    assert server.run(first.run_id)["stage"] == "ended"
    assert server.run(second)["status"] == "waiting"
    server.let_go(below["runId"])
    run = server.run(second, "announced")
    assert (run["status"], run["dependsOn"]) == ("done", [expected | {"state": "met"}])
    recorded = types(server, second)
    at = recorded.index("RunWaits")
    expected_types = ["SessionCreated", "RunWaits", "DependencyMet", "RunQueued"]
    assert recorded[at - 1 : at + 3] == expected_types
    for event in server.recorded(second)[: at - 1]:
        past = server.get(f"/v1/runs/{second}", at=f"pos:{event['position']}")
        assert [dependency["state"] for dependency in past["dependsOn"]] == ["waiting"]


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"dependsOn": ["nobody"]}, "dependency_unknown", 'dependsOn names "nobody", but no run of'),
    ({"chainAfter": "nobody"}, "dependency_unknown", 'chainAfter names "nobody", but no run of'),
    ({"dependsOn": ["twin"]}, "dependency_ambiguous", "which is the label of 2 sessions: run "),
    ({"dependsOn": ["bad"]}, "dependency_failed", ", which ended as error; spawn it again, or use"),
]


def test_impossible_dependency_is_refused_and_recorded(server: Server) -> None:
    session = server.new_session()
    empty = problem_of(server.spawn(session=session, dependsOn=["x"]), 422, "spawn_error")
    assert "No run of this tree can be waited for yet." in empty["detail"]
    server.announced(session=session, label="twin")
    twin = server.announced(session=session, label="twin")
    server.announced(session=session, label="bad", agentId="failing")
    ghost = problem_of(server.spawn(session=session, agentId="ghost"), 422, "spawn_error")["runId"]
    gone = {"chainAfter": {"run": ghost, "require": "ended"}}
    for body, rule, text in (*REFUSED, (gone, "dependency_failed", "was refused")):
        problem = problem_of(server.spawn(session=session, **body), 422, "spawn_error")
        assert text in problem["detail"], problem["detail"]
        assert problem["rule"] == rule
        run = server.run(problem["runId"])
        assert (run["stage"], run["rule"]) == ("refused", rule)
        if rule == "dependency_unknown":
            assert f'"twin" (run {twin["runId"]})' in problem["detail"]
    answer = server.spawn(session=server.new_session("other"), dependsOn=[twin["runId"]])
    assert problem_of(answer, 422, "spawn_error")["rule"] == "dependency_unknown"


def test_ring_of_waits_is_refused(server: Server) -> None:
    session = server.new_session()
    with (
        server.held(session, label="first") as first,
        server.held(session, label="other") as second,
    ):
        waits = spawn_waiting(server, session, "other", label="waits")["runId"]
        cases = [
            (first, "first", "which is this session's own run or an ancestor"),
            (first, first.run_id, "which is this session's own run or an ancestor"),
            (second, "waits", f"which waits for run {second.run_id} above this spawn"),
        ]
        for by, name, text in cases:
            problem = problem_of(
                server.spawn(session=by.child, dependsOn=[name]), 422, "spawn_error"
            )
            assert problem["rule"] == "dependency_cycle"
            assert text in problem["detail"], problem["detail"]
        below = server.accepted(session=first.child, agentId="main", dependsOn=["waits"])
        problem = problem_of(
            server.spawn(session=second.child, dependsOn=["first"]), 422, "spawn_error"
        )
        way = f"waits, by run {below} → run {waits}, for run {second.run_id} above"
        assert way in problem["detail"]
        server.let_go(second.run_id)
    server.run(below, "announced")
    assert server.run(waits)["outcome"] == "success"

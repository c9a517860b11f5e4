"""Runs that wait for others: shown, queued, ended with their reason, and refused."""

from typing import Any

import pytest

from tests.support.http.problems import problem_of
from tests.support.http.sharing import types
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server


def spawn_waiting(house: House, session: str, *names: str, **body: Any) -> dict[str, Any]:
    """Return a run that waits for those of these labels."""
    accepted = house.accepted(session, dependsOn=[*names], **body)
    run = house.server.run(accepted["runId"])
    assert (run["stage"], run["status"]) == ("session-created", "waiting")
    return run


def test_run_waits_for_all_of_its_dependency(house: House) -> None:
    session = house.session()
    with house.held(session, label="first") as first:
        below = house.accepted(first.child, agentId="holder", label="below")
        house.gates.wait(below["runId"])
        run = spawn_waiting(house, session, "first", label="second")
        second = run["runId"]
        expected = {"runId": first.run_id, "name": "first", "via": "dependsOn"}
        expected |= {"require": "success", "state": "waiting"}
        assert run["dependsOn"] == [expected]
        for status, found in (("waiting", [second]), ("preparing", []), ("queued", [])):
            items = house.get("/v1/runs", requester=session, status=status)["items"]
            assert [one["runId"] for one in items] == found, status
        assert house.get(f"/v1/sessions/{session}")["activeChildren"] == 2
    assert house.server.run(first.run_id)["stage"] == "ended"
    assert house.server.run(second)["status"] == "waiting"
    house.gates.open(below["runId"])
    run = house.server.run(second, "announced")
    assert (run["status"], run["dependsOn"]) == ("done", [expected | {"state": "met"}])
    recorded = types(house, second)
    at = recorded.index("RunWaits")
    expected_types = ["SessionCreated", "RunWaits", "DependencyMet", "RunQueued"]
    assert recorded[at - 1 : at + 3] == expected_types
    for event in house.events(second)[: at - 1]:
        past = house.get(f"/v1/runs/{second}", at=f"pos:{event['position']}")
        assert [one["state"] for one in past["dependsOn"]] == ["waiting"]


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"dependsOn": ["nobody"]}, "dependency_unknown", 'dependsOn names "nobody", and no run of'),
    ({"chainAfter": "nobody"}, "dependency_unknown", 'chainAfter names "nobody", and no run of'),
    ({"dependsOn": ["twin"]}, "dependency_ambiguous", "which is the label of 2 sessions: run "),
    ({"dependsOn": ["bad"]}, "dependency_failed", ", which ended as error; spawn it again, or say"),
]


def test_impossible_dependency_is_refused_and_recorded(house: House) -> None:
    session = house.session()
    empty = problem_of(house.spawn(session, dependsOn=["x"]), 422, "spawn_error")
    assert "No run of this tree can be waited for yet." in empty["detail"]
    house.ended(session, label="twin")
    twin = house.ended(session, label="twin")
    house.ended(session, label="bad", agentId="failing")
    ghost = problem_of(house.spawn(session, agentId="ghost"), 422, "spawn_error")["runId"]
    gone = {"chainAfter": {"run": ghost, "require": "ended"}}
    for body, rule, text in (*REFUSED, (gone, "dependency_failed", "was refused")):
        problem = problem_of(house.spawn(session, **body), 422, "spawn_error")
        assert text in problem["detail"], problem["detail"]
        assert problem["rule"] == rule
        run = house.server.run(problem["runId"])
        assert (run["stage"], run["rule"]) == ("refused", rule)
        if rule == "dependency_unknown":
            assert f'"twin" (run {twin["runId"]})' in problem["detail"]
    answer = house.spawn(house.session("other"), dependsOn=[twin["runId"]])
    assert problem_of(answer, 422, "spawn_error")["rule"] == "dependency_unknown"


def test_ring_of_waits_is_refused(house: House) -> None:
    session = house.session()
    with house.held(session, label="first") as first, house.held(session, label="other") as other:
        waits = spawn_waiting(house, session, "other", label="waits")["runId"]
        cases = [
            (first, "first", "which is this session's own run or one above it"),
            (first, first.run_id, "which is this session's own run or one above it"),
            (other, "waits", f"which waits for run {other.run_id} above this spawn"),
        ]
        for by, name, text in cases:
            problem = problem_of(house.spawn(by.child, dependsOn=[name]), 422, "spawn_error")
            assert problem["rule"] == "dependency_cycle"
            assert text in problem["detail"], problem["detail"]
        below = house.accepted(first.child, agentId="main", dependsOn=["waits"])["runId"]
        problem = problem_of(house.spawn(other.child, dependsOn=["first"]), 422, "spawn_error")
        way = f"waits, by run {below} → run {waits}, for run {other.run_id} above"
        assert way in problem["detail"]
        house.gates.open(other.run_id)
    house.server.run(below, "announced")
    assert house.server.run(waits)["outcome"] == "success"

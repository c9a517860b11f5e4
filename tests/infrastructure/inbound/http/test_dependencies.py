"""Runs that wait for others: asked for, shown, queued, ended, stopped, and refused."""

from typing import Any

import pytest

from tests.support.http.problems import problem_of
from tests.support.http.sharing import types
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server


def spawn_waiting(house: House, session: str, *names: str, **body: Any) -> dict[str, Any]:
    """A run that waits for those of these labels."""
    accepted = house.accepted(session, dependsOn=[*names], **body)
    run = house.server.run(accepted["runId"])
    assert (run["stage"], run["status"]) == ("session-created", "waiting")
    return run


def announced_text(house: House, session: str, run_id: str) -> str:
    """The announcement of a run."""
    (found,) = [one for one in house.server.inbox(session) if one["runId"] == run_id]
    return str(found["text"])


def test_a_run_waits_until_the_one_that_it_depends_on_is_done(house: House) -> None:
    session = house.session()
    with house.held(session, label="first") as first:
        run = spawn_waiting(house, session, "first", label="second")
        second = run["runId"]
        expected = {"runId": first.run_id, "name": "first", "via": "dependsOn"}
        expected |= {"require": "success", "state": "waiting"}
        assert run["dependsOn"] == [expected]
        assert types(house, second)[-2:] == ["SessionCreated", "RunWaits"]
        for status, found in (("waiting", [second]), ("preparing", []), ("queued", [])):
            query = {"requester": session, "status": status}
            items = house.get("/v1/runs", **query)["items"]
            assert [one["runId"] for one in items] == found, status
        assert house.get(f"/v1/sessions/{session}")["activeChildren"] == 2
    run = house.server.run(second, "announced")
    assert (run["status"], run["dependsOn"]) == ("done", [expected | {"state": "met"}])
    recorded = types(house, second)
    at = recorded.index("RunWaits")
    assert recorded[at : at + 3] == ["RunWaits", "DependencyMet", "RunQueued"]
    events = house.events(second)
    then = {one["type"]: f"pos:{one['position']}" for one in events}
    for name, state in (("SpawnRequested", "waiting"), ("SessionCreated", "waiting")):
        past = house.get(f"/v1/runs/{second}", at=then[name])
        assert [one["state"] for one in past["dependsOn"]] == [state], name
    lanes = house.get("/v1/lanes")["items"]
    assert second not in str(lanes)


def test_a_run_whose_dependencies_are_met_is_queued_at_once(house: House) -> None:
    session = house.session()
    first = house.ended(session, label="first")
    run = house.ended(session, chainAfter=first["runId"], dependsOn=["first"])
    assert [(one["via"], one["state"]) for one in run["dependsOn"]] == [("dependsOn", "met")]
    assert "RunWaits" not in types(house, run["runId"])
    assert "DependencyMet" in types(house, run["runId"])


def test_a_run_whose_dependency_fails_ends_without_starting_and_says_why(house: House) -> None:
    session = house.session()
    with house.held(session, label="first") as first:
        after = spawn_waiting(house, session, "first", label="after")
        last = spawn_waiting(house, session, "after")
        patient = house.accepted(session, dependsOn=[{"run": "first", "require": "ended"}])
        house.http.post(f"/v1/runs/{first.run_id}/stop", json={})
    run = house.server.run(after["runId"], "announced")
    assert (run["outcome"], run["startedAt"], run["dependsOn"][0]["state"]) == (
        "error",
        None,
        "unmet",
    )
    why = f'it was not started: "first" (run {first.run_id}), which it depends on, was stopped'
    assert run["error"] == why
    assert why in announced_text(house, session, after["runId"])
    run = house.server.run(last["runId"], "announced")
    assert '"after"' in run["error"]
    assert run["error"].endswith("ended as error")
    assert house.server.run(patient["runId"], "announced")["outcome"] == "success"
    assert house.get(f"/v1/sessions/{session}")["activeChildren"] == 0


def test_a_run_that_waits_is_stopped_like_any_other(house: House) -> None:
    session = house.session()
    with house.held(session, label="first"):
        second = spawn_waiting(house, session, "first")["runId"]
        answer = house.http.post(f"/v1/runs/{second}/stop", json={"reason": "enough"})
        assert answer.status_code == 200, answer.text
        run = house.server.run(second, "announced")
        assert (run["status"], run["dependsOn"][0]["state"]) == ("stopped", "unmet")
    assert "RunQueued" not in types(house, second)


def test_to_wait_for_a_run_is_to_wait_for_all_below_it(house: House) -> None:
    session = house.session()
    with house.held(session, label="first") as first:
        below = house.accepted(first.child, agentId="holder", label="below")
        house.gates.wait(below["runId"])
        second = spawn_waiting(house, session, "first")["runId"]
    assert house.server.run(first.run_id)["stage"] == "ended"
    assert house.server.run(second)["status"] == "waiting"
    house.gates.open(below["runId"])
    house.server.run(second, "announced")


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"dependsOn": ["nobody"]}, "dependency_unknown", 'dependsOn names "nobody", and no run of'),
    ({"chainAfter": "nobody"}, "dependency_unknown", 'chainAfter names "nobody", and no run of'),
    ({"dependsOn": ["twin"]}, "dependency_ambiguous", "which is the label of 2 sessions: run "),
    ({"dependsOn": ["bad"]}, "dependency_failed", ", which ended as error; spawn it again, or say"),
    ({"chainAfter": {"run": "gone", "require": "ended"}}, "dependency_failed", "was refused"),
]


def test_names_that_cannot_be_waited_for_are_refused_and_recorded(house: House) -> None:
    session = house.session()
    empty = problem_of(house.spawn(session, dependsOn=["x"]), 422, "spawn_error")
    assert "No run of this tree can be waited for yet." in empty["detail"]
    house.ended(session, label="twin")
    twin = house.ended(session, label="twin")
    house.ended(session, label="bad", agentId="failing")
    ghost = problem_of(house.spawn(session, agentId="ghost"), 422, "spawn_error")
    for body, rule, text in REFUSED:
        if body.get("chainAfter") == {"run": "gone", "require": "ended"}:
            body["chainAfter"]["run"] = ghost["runId"]
        problem = problem_of(house.spawn(session, **body), 422, "spawn_error")
        assert text in problem["detail"], problem["detail"]
        assert problem["rule"] == rule
        run = house.server.run(problem["runId"])
        assert (run["stage"], run["rule"]) == ("refused", rule)
        if rule == "dependency_unknown":
            assert f'"twin" (run {twin["runId"]})' in problem["detail"]
        explained = house.get(f"/v1/runs/{problem['runId']}/explain")["decisions"]
        (said,) = [one for one in explained if one["rule"] == rule]
        assert said["result"] == "refused"
    assert house.get(f"/v1/sessions/{session}")["activeChildren"] == 0
    other = house.session("other")
    answer = house.spawn(other, dependsOn=[twin["runId"]])
    assert problem_of(answer, 422, "spawn_error")["rule"] == "dependency_unknown"


def test_nobody_waits_in_a_ring(house: House) -> None:
    session = house.session()
    with house.held(session, label="first") as first, house.held(session, label="other") as other:
        waits = spawn_waiting(house, session, "other", label="waits")["runId"]
        cases = [
            (first, "first", "which is this session's own run or one above it"),
            (first, first.run_id, "which is this session's own run or one above it"),
            (other, "waits", f"which waits for run {other.run_id} above this spawn"),
        ]
        for by, name, text in cases:
            answer = house.spawn(by.child, dependsOn=[name])
            problem = problem_of(answer, 422, "spawn_error")
            assert problem["rule"] == "dependency_cycle"
            assert text in problem["detail"], problem["detail"]
        below = house.accepted(first.child, agentId="main", dependsOn=["waits"])["runId"]
        answer = house.spawn(other.child, dependsOn=["first"])
        problem = problem_of(answer, 422, "spawn_error")
        way = f"waits, by run {below} → run {waits}, for run {other.run_id} above"
        assert way in problem["detail"]
        house.gates.open(other.run_id)
    house.server.run(below, "announced")
    assert house.server.run(waits)["outcome"] == "success"

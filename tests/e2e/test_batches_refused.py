"""Several tasks of one request of which not all can be: none is, and nothing is left."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.builders.batch_requests import THREE, accepted, living, session
from tests.support.servers.batching_server import PLACES, Batching
from tests.support.servers.databases import Databases
from tests.support.servers.running_server import wait_for

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def server(databases: Databases) -> Iterator[Batching]:
    """A server that lives."""
    with living(databases) as server:
        yield server


def by_id(server: Batching, main: str) -> list[str]:
    """The ids of all runs of a session."""
    return [one["runId"] for one in server.runs_of(main)]


def test_a_batch_without_room_for_all_is_refused_as_a_whole(server: Batching) -> None:
    main = session("full")
    held = accepted(server.batch("a", "b", "c", session=main, agentId="plain", label="x"))
    waiting = [one["runId"] for one in held["runs"]]
    for run_id in waiting:
        server.run(run_id, "announced")
    answer = server.batch(*["more"] * (PLACES + 1), session=main, agentId="plain", label="y")
    assert answer.status_code == 403, answer.text
    problem = answer.json()
    assert problem["code"] == "spawn_forbidden"
    assert problem["rule"] == "active_children"
    assert problem["detail"] == (
        "sessions_spawn has reached max active children for this session (0/5):"
        " 6 tasks need 6 places"
    )
    assert (problem["current"], problem["limit"]) == (0, 5)
    refused = [one for one in server.runs_of(main) if one["status"] == "refused"]
    assert len(refused) == PLACES + 1
    assert {one["batchId"] for one in refused} == {problem["batchId"]}
    assert {one["rule"] for one in refused} == {"active_children"}
    assert server.places(main) == 0
    told = server.http.get(f"/v1/runs/{refused[3]['runId']}/explain").json()
    (rule,) = [one for one in told["decisions"] if one["rule"] == "active_children"]
    assert rule["result"] == "refused"
    assert rule["compared"]["places"] == 6


def test_one_that_cannot_be_prepared_is_the_refusal_of_all(server: Batching) -> None:
    main = session("bad")
    answer = server.batch(*THREE, session=main, agentId="fussy", label="bad")
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    first, second, third = server.runs_of(main)
    assert problem["runId"] == second["runId"]
    assert problem["rule"] == second["rule"] == "runtime"
    assert problem["batchId"] == second["batchId"]
    assert problem["errors"] == [{"pointer": "/task/1", "detail": problem["detail"]}]
    text = problem["detail"].rstrip(".")
    for one in (first, third):
        assert one["status"] == "refused"
        assert one["rule"] == "batch"
        assert server.run(one["runId"])["error"] == (
            f'Task 2 of 3 ("bad-2", run {second["runId"]}) could not be prepared: {text}.'
            " No task of this batch was started."
        )
    told = server.http.get(f"/v1/runs/{third['runId']}/explain").json()
    (rule,) = [one for one in told["decisions"] if one["result"] == "refused"]
    assert (rule["rule"], rule["text"]) == (
        "batch",
        f"task 2 of its batch (run {second['runId']}) could not be prepared",
    )
    assert server.places(main) == 0
    # Whoever asked was told.
    assert server.inbox(main) == []
    refusals = [one for one in server.appends(*by_id(server, main)) if "SpawnRefused" in one]
    assert [Counter(one)["SpawnRefused"] for one in refusals] == [3]
    assert Counter(refusals[0])["ChildReleased"] == 3


def test_who_is_still_at_work_when_another_is_refused_is_broken_off(server: Batching) -> None:
    main = session("mixed")
    aside = server.spawned_aside(
        task=["a", "b"], parallel=True, agentId="fussy", label="mixed",
        requester={"sessionKey": main},
    )  # fmt: skip
    first, second = wait_for("both", lambda: runs if len(runs := server.runs_of(main)) == 2 else [])
    number = server.note(f"at.{first['runId']}").strip()
    script = Path("/proc", number)
    # Scripts of a spawn have 30 seconds in all.
    wait_for("its script to be broken off", lambda: not script.exists(), seconds=15)
    answer = aside.answer()
    assert answer is not None
    assert (answer.json()["rule"], answer.json()["runId"]) == ("runtime", second["runId"])
    assert [one["rule"] for one in server.runs_of(main)] == ["batch", "runtime"]
    assert server.places(main) == 0


def test_scripts_of_the_others_are_broken_off(server: Batching) -> None:
    main = session("late")
    aside = server.spawned_aside(
        task=["a", "b"], parallel=True, agentId="fussy", label="held",
        requester={"sessionKey": main}, key="late",
    )  # fmt: skip
    first, second = server.are_at_work(main, 2)
    again = server.batch("a", "b", session=main, agentId="fussy", label="held", key="late")
    assert again.json()["code"] == "idempotency_in_flight"
    assert again.json()["runId"] == first["runId"]
    stopped = server.http.post(f"/v1/runs/{second['runId']}/stop", json={"reason": "enough"})
    assert stopped.status_code == 200, stopped.text
    answer = aside.answer()
    assert answer is not None
    problem = answer.json()
    assert (problem["rule"], problem["runId"]) == ("stopped", second["runId"])
    assert problem["batchId"] == first["batchId"]
    assert problem["errors"][0]["pointer"] == "/task/1"
    assert [one["rule"] for one in server.runs_of(main)] == ["batch", "stopped"]
    assert server.places(main) == 0
    refusals = [one for one in server.appends(*by_id(server, main)) if "SpawnRefused" in one]
    assert len(refusals) == 1


def test_a_session_that_is_stopped_stops_all_that_is_prepared(server: Batching) -> None:
    main = session("stopped")
    aside = server.spawned_aside(
        task=["a", "b", "c"], parallel=True, agentId="fussy", label="held",
        requester={"sessionKey": main},
    )  # fmt: skip
    server.are_at_work(main, 3)
    assert server.http.post(f"/v1/sessions/{main}/stop", json={}).status_code == 200
    answer = aside.answer()
    assert answer is not None
    assert answer.json()["rule"] == "stopped"
    assert Counter(one["rule"] for one in server.runs_of(main)) == {"stopped": 1, "batch": 2}


def test_of_two_batches_at_once_for_too_few_places_one_is_admitted(server: Batching) -> None:
    main = session("race")
    asked = {"agentId": "fussy", "parallel": True, "requester": {"sessionKey": main}}
    asides = [
        server.spawned_aside(task=["a", "b", "c"], label=label, **asked)
        for label in ("held-one", "held-other")
    ]
    for one in server.are_at_work(main, 3):
        server.let_go(one["runId"])
    answers = [aside.answer() for aside in asides]
    codes = [one.status_code for one in answers if one is not None]
    assert sorted(codes) == [201, 403]
    runs = server.runs_of(main)
    admitted = [one for one in server.whole_log() if one["type"] == "ChildAdmitted"]
    ids = {one["runId"] for one in runs}
    counts = [one["payload"]["activeChildren"] for one in admitted if one["runId"] in ids]
    assert counts == [0, 1, 2]


def test_with_three_places_taken_three_more_are_refused(server: Batching) -> None:
    main = session("taken")
    asked = {"agentId": "fussy", "parallel": True, "requester": {"sessionKey": main}}
    aside = server.spawned_aside(task=["a", "b", "c"], label="held", **asked)
    held = server.are_at_work(main, 3)
    problem = server.batch("d", "e", "f", session=main, agentId="plain").json()
    assert problem["detail"] == (
        "sessions_spawn has reached max active children for this session (3/5):"
        " 3 tasks need 3 places"
    )
    assert server.places(main) == 3
    accepted(server.batch("d", "e", session=main, agentId="plain"))
    for one in held:
        server.let_go(one["runId"])
    answer = aside.answer()
    assert answer is not None
    for one in accepted(answer)["runs"]:
        assert server.run(one["runId"], "announced")["outcome"] == "success"


def test_a_step_that_cannot_be_taken_refuses_all_and_nothing_is_left(server: Batching) -> None:
    main, place = session("step"), server.folder.parent / "made"
    server.clear()
    place.write_text("of somebody else")
    try:
        answer = server.batch(*THREE, session=main, agentId="maker", label="m")
    finally:
        place.unlink()
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert problem["rule"] == "workspace"
    rules = Counter(one["rule"] for one in server.runs_of(main))
    assert rules == {"workspace": 1, "batch": 2}
    assert server.places(main) == 0
    assert not place.exists()

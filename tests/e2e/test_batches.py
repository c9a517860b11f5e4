"""Several tasks of one request: as many runs, or none."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.batching_server import PLACES, Batching
from tests.support.data_directories import copied, new_place

pytestmark = pytest.mark.slow

THREE = ("count the ships", "count the masts", "count the crew")


@pytest.fixture(scope="module")
def server(made_data_dir: Path) -> Iterator[Batching]:
    """A server that lives."""
    with new_place() as place:
        with Batching(copied(made_data_dir, place / "data"), place / "notes") as server:
            yield server
            verified = server.verified()
            assert verified.returncode == 0, verified.stdout + verified.stderr
        assert " ERROR " not in server.log(), server.log()


def session(name: str) -> str:
    """A requester of its own."""
    return f"agent:main:{name}"


def accepted(answer: Any) -> dict[str, Any]:
    """The body of an accepted request."""
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def test_each_task_becomes_a_run_of_the_batch(server: Batching) -> None:
    main = session("each")
    body = accepted(server.batch(*THREE, session=main, agentId="plain", label="count"))
    runs = body["runs"]
    assert [one["label"] for one in runs] == ["count-1", "count-2", "count-3"]
    assert "runId" not in body
    assert "childSessionKey" not in body
    ended = [server.run(one["runId"], "announced") for one in runs]
    assert [one["task"] for one in ended] == list(THREE)
    assert {one["batchId"] for one in ended} == {body["batchId"]}
    assert {one["outcome"] for one in ended} == {"success"}
    assert len({one["sessionId"] for one in ended}) == 3
    assert server.places(main) == 0
    assert len(server.inbox(main)) == 3


def test_all_are_admitted_in_one_append_and_created_in_one(server: Batching) -> None:
    main = session("appends")
    body = accepted(server.batch(*THREE, session=main, agentId="plain"))
    ids = [one["runId"] for one in body["runs"]]
    for run_id in ids:
        server.run(run_id, "announced")
    admitted, created, *_ = server.appends(*ids)
    assert admitted == ["SessionObserved", *["SpawnRequested"] * 3, *["ChildAdmitted"] * 3]
    assert Counter(created) == Counter(
        {
            "ScriptsResolved": 3,
            "PreparationStarted": 3,
            "SessionCreated": 3,
            "SessionObserved": 3,
            "RunQueued": 3,
        }
    )
    # What is recorded of a session names the run that it is about.
    for run_id in ids:
        types = Counter(one["type"] for one in server.whole_log() if one["runId"] == run_id)
        assert types["ChildAdmitted"] == types["ChildReleased"] == 1


def test_one_task_of_a_list_is_a_batch_of_one(server: Batching) -> None:
    answer = server.batch("alone", session=session("one"), agentId="plain", label="only")
    body = accepted(answer)
    (run,) = body["runs"]
    assert run["label"] == body["label"] == "only-1"
    assert body["runId"] == run["runId"]
    assert answer.headers["Location"] == f"/v1/runs/{run['runId']}"
    assert server.run(run["runId"], "announced")["batchId"] == body["batchId"]


def test_without_a_label_none_has_one(server: Batching) -> None:
    body = accepted(server.batch(*THREE, session=session("bare"), agentId="plain"))
    assert [one["label"] for one in body["runs"]] == [None] * 3


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


def test_the_same_key_gives_the_same_answer(server: Batching) -> None:
    asked = {"session": session("again"), "agentId": "plain", "key": "again"}
    first = server.batch(*THREE, **asked)
    second = server.batch(*THREE, **asked)
    assert accepted(first) == accepted(second)
    assert second.headers["Idempotent-Replayed"] == "true"
    assert second.headers["Location"] == first.headers["Location"]
    assert server.batch("other", **asked).json()["code"] == "idempotency_key_reused"


def test_scripts_run_for_each_task_by_itself(server: Batching) -> None:
    body = accepted(server.batch("a", "b", session=session("told"), agentId="fussy", label="t"))
    messages = []
    for one in body["runs"]:
        server.run(one["runId"], "announced")
        prompt = server.http.get(f"/v1/runs/{one['runId']}/prompt").json()
        messages.append(str(prompt["message"]))
    assert "for you: label=t-1" in messages[0]
    assert "for you: label=t-2" in messages[1]


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
    assert (rule["rule"], rule["text"]) == ("batch", "task 2 of its batch could not be prepared")
    assert server.places(main) == 0
    # Whoever asked was told.
    assert server.inbox(main) == []
    refusals = [one for one in server.appends(*by_id(server, main)) if "SpawnRefused" in one]
    assert [Counter(one)["SpawnRefused"] for one in refusals] == [3]
    assert Counter(refusals[0])["ChildReleased"] == 3


def by_id(server: Batching, main: str) -> list[str]:
    """The ids of all runs of a session."""
    return [one["runId"] for one in server.runs_of(main)]


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


def test_once_they_are_there_each_is_by_itself(server: Batching) -> None:
    main = session("apart")
    body = accepted(server.batch("a", "b", session=main, agentId="plain", label="p"))
    one, other = (one["runId"] for one in body["runs"])
    server.http.post(f"/v1/runs/{one}/stop", json={})
    assert server.run(other, "announced")["outcome"] == "success"


def test_what_a_batch_shares_is_in_its_family_once(server: Batching) -> None:
    main = session("shared")
    body = accepted(
        server.batch(*THREE, session=main, agentId="plain", sharedContext={"goal": "a fleet"})
    )
    for one in body["runs"]:
        server.run(one["runId"], "announced")
        own = server.http.get(f"/v1/runs/{one['runId']}/shared-context").json()
        assert own["values"] == {"goal": "a fleet"}
    shared = server.http.get(f"/v1/sessions/{main}/shared-context").json()
    assert len(shared["history"]) == 1
    assert shared["values"] == {"goal": "a fleet"}


def test_each_gets_what_it_needs_made(server: Batching) -> None:
    body = accepted(server.batch(*THREE, session=session("made"), agentId="maker"))
    for one in body["runs"]:
        assert server.run(one["runId"], "announced")["outcome"] == "success"


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

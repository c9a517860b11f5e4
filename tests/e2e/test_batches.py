"""Several tasks of one request: as many runs, or none."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support.builders.batch_requests import THREE, accepted, living, session
from tests.support.servers.batching_server import Batching
from tests.support.servers.databases import Databases

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def server(databases: Databases) -> Iterator[Batching]:
    """A server that lives."""
    with living(databases) as server:
        yield server


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

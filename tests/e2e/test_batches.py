"""Several tasks of one request: as many runs, or none, also when the server is killed."""

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.builders.launches import program
from tests.support.servers.configurations import agent, configuration
from tests.support.servers.databases import Databases
from tests.support.servers.server import QUICK_LEASE_SECONDS, Background, Server, serving
from tests.support.tiers import nightly_but
from tests.support.waiting import wait_for

MAIN = "agent:main:main"
PLACES = 5
THREE = ("count the ships", "count the masts", "count the crew")

# `bad`, `late` and `mixed` are refused, the second of them once it may be; who is `held`, or the
# first of `mixed`, waits to be let go.
_CHOOSER = """#!/bin/sh
case "$1" in
    label=held*|label=late*-2|label=mixed*-1)
        echo $$ > "{folder}/at.$SPAWNLOG_RUN_ID"
        while [ ! -e "{folder}/$SPAWNLOG_RUN_ID.go" ]; do sleep 0.02; done ;;
esac
case "$1" in
    label=bad*-2|label=late*-2|label=mixed*-2)
        echo '{"message": "no", "targetAgentId": "broken"}' ;;
    *) echo '{"message": "for you: '"$1"'"}' ;;
esac
"""


def batching(folder: Path) -> dict[str, Any]:
    """Return a configuration with agents `plain`, for which nothing has to be done; `fussy`, about
    which a script has a word; `maker`, which gets a folder of its own; and `broken`, which nobody
    can run."""
    chooser = {
        "id": "chooser",
        "uri": str(program(folder / "chooser.sh", _CHOOSER.replace("{folder}", str(folder)))),
        "format": "arguments",
        "argMap": {"label": "label"},
        "position": "prepend",
        "returnKey": "message",
        "agentIdOverrideKey": "targetAgentId",
        "timeoutSeconds": 60,
    }
    return configuration(
        agent("main", default=True),
        agent("plain"),
        agent("fussy", subagents={"contextScripts": {"run": [chooser]}}),
        agent("maker", workspace=str(folder.parent / "made" / "desk")),
        agent("broken", {"type": "embedded"}),
        maxChildrenPerAgent=PLACES,
        maxConcurrent=PLACES,
        archiveAfterMinutes=0,
        workspace=folder / "work",
        leaseSeconds=QUICK_LEASE_SECONDS,
    )


@pytest.fixture(scope="module")
def one_server(databases: Databases) -> Iterator[Server]:
    with serving(databases, batching, dies=True) as running:
        yield running
        assert " ERROR " not in running.log(), running.log()


@pytest.fixture
def server(one_server: Server) -> Server:
    """A server that runs, and has made nothing for anybody yet."""
    one_server.ensure_running()
    shutil.rmtree(one_server.folder.parent / "made", ignore_errors=True)
    return one_server


def batch(server: Server, *tasks: str, session: str = MAIN, **body: Any) -> httpx2.Response:
    """Ask for a run for each task."""
    whole = {"requester": {"sessionKey": session}, "parallel": True, **body}
    return server.spawn(list(tasks), **whole)


def accepted(answer: httpx2.Response | None) -> dict[str, Any]:
    """Return the body of an accepted request."""
    assert answer is not None
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def runs_of(server: Server, session: str) -> list[dict[str, Any]]:
    """Return all runs of a session, the oldest first."""
    return sorted(server.runs(requester=session), key=lambda one: str(one["label"]))


def appends(server: Server, *run_ids: str) -> list[list[str]]:
    """Return what was recorded of these runs and of the places for them, append by append."""
    found: dict[int, list[str]] = {}
    for event in server.whole_log():
        if event["runId"] in run_ids:
            found.setdefault(event["appendLast"], []).append(event["type"])
    return list(found.values())


def scripts_at_work(server: Server, session: str, count: int) -> list[dict[str, Any]]:
    """Return the runs of a session, once so many of their scripts wait."""

    def at_work() -> list[dict[str, Any]] | None:
        runs = runs_of(server, session)
        waiting = [one for one in runs if (server.folder / f"at.{one['runId']}").exists()]
        return runs if len(waiting) == count else None

    return wait_for("the scripts to be at work", at_work)


def places(server: Server, session: str) -> int:
    """Return how many places of a session are taken."""
    return int(server.session(session)["activeChildren"])


@pytest.mark.server
def test_each_task_becomes_a_run_of_the_batch(server: Server) -> None:
    main = "agent:main:each"
    body = accepted(batch(server, *THREE, session=main, agentId="plain", label="count"))
    runs = body["runs"]
    assert [one["label"] for one in runs] == ["count-1", "count-2", "count-3"]
    assert "runId" not in body
    assert "childSessionKey" not in body
    ended = [server.run(one["runId"], "announced") for one in runs]
    assert [one["task"] for one in ended] == list(THREE)
    assert {one["batchId"] for one in ended} == {body["batchId"]}
    assert {one["outcome"] for one in ended} == {"success"}
    assert len({one["sessionId"] for one in ended}) == 3
    assert places(server, main) == 0
    assert len(server.inbox(main)) == 3


@pytest.mark.server
def test_all_are_admitted_in_one_append_and_created_in_one(server: Server) -> None:
    main = "agent:main:appends"
    body = accepted(batch(server, *THREE, session=main, agentId="plain"))
    ids = [one["runId"] for one in body["runs"]]
    for run_id in ids:
        server.run(run_id, "announced")
    admitted, created, *_ = appends(server, *ids)
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


@pytest.mark.server
def test_one_task_of_a_list_is_a_batch_of_one(server: Server) -> None:
    answer = batch(server, "alone", session="agent:main:one", agentId="plain", label="only")
    body = accepted(answer)
    (run,) = body["runs"]
    assert run["label"] == body["label"] == "only-1"
    assert body["runId"] == run["runId"]
    assert answer.headers["Location"] == f"/v1/runs/{run['runId']}"
    assert server.run(run["runId"], "announced")["batchId"] == body["batchId"]


@pytest.mark.server
def test_without_a_label_none_has_one(server: Server) -> None:
    body = accepted(batch(server, *THREE, session="agent:main:bare", agentId="plain"))
    assert [one["label"] for one in body["runs"]] == [None] * 3


@pytest.mark.server
def test_the_same_key_gives_the_same_answer(server: Server) -> None:
    asked = {"session": "agent:main:again", "agentId": "plain", "key": "again"}
    first = batch(server, *THREE, **asked)
    second = batch(server, *THREE, **asked)
    assert accepted(first) == accepted(second)
    assert second.headers["Idempotent-Replayed"] == "true"
    assert second.headers["Location"] == first.headers["Location"]
    assert batch(server, "other", **asked).json()["code"] == "idempotency_key_reused"


@pytest.mark.server
def test_scripts_run_for_each_task_by_itself(server: Server) -> None:
    body = accepted(batch(server, "a", "b", session="agent:main:told", agentId="fussy", label="t"))
    messages = []
    for one in body["runs"]:
        server.run(one["runId"], "announced")
        prompt = server.http.get(f"/v1/runs/{one['runId']}/prompt").json()
        messages.append(str(prompt["message"]))
    assert "for you: label=t-1" in messages[0]
    assert "for you: label=t-2" in messages[1]


@pytest.mark.server
def test_once_they_are_there_each_is_by_itself(server: Server) -> None:
    main = "agent:main:apart"
    body = accepted(batch(server, "a", "b", session=main, agentId="plain", label="p"))
    one, other = (one["runId"] for one in body["runs"])
    server.http.post(f"/v1/runs/{one}/stop", json={})
    assert server.run(other, "announced")["outcome"] == "success"


@pytest.mark.server
def test_what_a_batch_shares_is_in_its_family_once(server: Server) -> None:
    main = "agent:main:shared"
    body = accepted(
        batch(server, *THREE, session=main, agentId="plain", sharedContext={"goal": "a fleet"})
    )
    for one in body["runs"]:
        server.run(one["runId"], "announced")
        own = server.http.get(f"/v1/runs/{one['runId']}/shared-context").json()
        assert own["values"] == {"goal": "a fleet"}
    shared = server.http.get(f"/v1/sessions/{main}/shared-context").json()
    assert len(shared["history"]) == 1
    assert shared["values"] == {"goal": "a fleet"}


@pytest.mark.server
def test_each_gets_what_it_needs_made(server: Server) -> None:
    body = accepted(batch(server, *THREE, session="agent:main:made", agentId="maker"))
    for one in body["runs"]:
        assert server.run(one["runId"], "announced")["outcome"] == "success"


def by_id(server: Server, main: str) -> list[str]:
    """The ids of all runs of a session."""
    return [one["runId"] for one in runs_of(server, main)]


@pytest.mark.server
def test_a_batch_without_room_for_all_is_refused_as_a_whole(server: Server) -> None:
    main = "agent:main:full"
    held = accepted(batch(server, "a", "b", "c", session=main, agentId="plain", label="x"))
    waiting = [one["runId"] for one in held["runs"]]
    for run_id in waiting:
        server.run(run_id, "announced")
    answer = batch(server, *["more"] * (PLACES + 1), session=main, agentId="plain", label="y")
    assert answer.status_code == 403, answer.text
    problem = answer.json()
    assert problem["code"] == "spawn_forbidden"
    assert problem["rule"] == "active_children"
    assert problem["detail"] == (
        "sessions_spawn has reached max active children for this session (0/5):"
        " 6 tasks need 6 places"
    )
    assert (problem["current"], problem["limit"]) == (0, 5)
    refused = [one for one in runs_of(server, main) if one["status"] == "refused"]
    assert len(refused) == PLACES + 1
    assert {one["batchId"] for one in refused} == {problem["batchId"]}
    assert {one["rule"] for one in refused} == {"active_children"}
    assert places(server, main) == 0
    told = server.http.get(f"/v1/runs/{refused[3]['runId']}/explain").json()
    (rule,) = [one for one in told["decisions"] if one["rule"] == "active_children"]
    assert rule["result"] == "refused"
    assert rule["compared"]["places"] == 6


@pytest.mark.server
def test_one_that_cannot_be_prepared_is_the_refusal_of_all(server: Server) -> None:
    main = "agent:main:bad"
    answer = batch(server, *THREE, session=main, agentId="fussy", label="bad")
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    first, second, third = runs_of(server, main)
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
    assert places(server, main) == 0
    # Whoever asked was told.
    assert server.inbox(main) == []
    refusals = [one for one in appends(server, *by_id(server, main)) if "SpawnRefused" in one]
    assert [Counter(one)["SpawnRefused"] for one in refusals] == [3]
    assert Counter(refusals[0])["ChildReleased"] == 3


@pytest.mark.server
def test_who_is_still_at_work_when_another_is_refused_is_broken_off(server: Server) -> None:
    main = "agent:main:mixed"
    aside = server.spawn_in_background(
        task=["a", "b"], parallel=True, agentId="fussy", label="mixed",
        session=main,
    )  # fmt: skip
    first, second = wait_for(
        "both", lambda: runs if len(runs := runs_of(server, main)) == 2 else []
    )
    number = server.note(f"at.{first['runId']}").strip()
    script = Path("/proc", number)
    # Scripts of a spawn have 30 seconds in all.
    wait_for("its script to be broken off", lambda: not script.exists(), seconds=15)
    answer = aside.answer()
    assert answer is not None
    assert (answer.json()["rule"], answer.json()["runId"]) == ("runtime", second["runId"])
    assert [one["rule"] for one in runs_of(server, main)] == ["batch", "runtime"]
    assert places(server, main) == 0


@pytest.mark.server
def test_scripts_of_the_others_are_broken_off(server: Server) -> None:
    main = "agent:main:late"
    aside = server.spawn_in_background(
        task=["a", "b"], parallel=True, agentId="fussy", label="held",
        session=main, key="late",
    )  # fmt: skip
    first, second = scripts_at_work(server, main, 2)
    again = batch(server, "a", "b", session=main, agentId="fussy", label="held", key="late")
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
    assert [one["rule"] for one in runs_of(server, main)] == ["batch", "stopped"]
    assert places(server, main) == 0
    refusals = [one for one in appends(server, *by_id(server, main)) if "SpawnRefused" in one]
    assert len(refusals) == 1


@pytest.mark.server
def test_a_session_that_is_stopped_stops_all_that_is_prepared(server: Server) -> None:
    main = "agent:main:stopped"
    aside = server.spawn_in_background(
        task=["a", "b", "c"], parallel=True, agentId="fussy", label="held",
        session=main,
    )  # fmt: skip
    scripts_at_work(server, main, 3)
    assert server.http.post(f"/v1/sessions/{main}/stop", json={}).status_code == 200
    answer = aside.answer()
    assert answer is not None
    assert answer.json()["rule"] == "stopped"
    assert Counter(one["rule"] for one in runs_of(server, main)) == {"stopped": 1, "batch": 2}


@pytest.mark.server
def test_of_two_batches_at_once_for_too_few_places_one_is_admitted(server: Server) -> None:
    main = "agent:main:race"
    asked = {"agentId": "fussy", "parallel": True, "requester": {"sessionKey": main}}
    asides = [
        server.spawn_in_background(task=["a", "b", "c"], label=label, **asked)
        for label in ("held-one", "held-other")
    ]
    for one in scripts_at_work(server, main, 3):
        server.let_go(one["runId"])
    answers = [aside.answer() for aside in asides]
    codes = [one.status_code for one in answers if one is not None]
    assert sorted(codes) == [201, 403]
    runs = runs_of(server, main)
    admitted = [one for one in server.whole_log() if one["type"] == "ChildAdmitted"]
    ids = {one["runId"] for one in runs}
    counts = [one["payload"]["activeChildren"] for one in admitted if one["runId"] in ids]
    assert counts == [0, 1, 2]


@pytest.mark.server
def test_with_three_places_taken_three_more_are_refused(server: Server) -> None:
    main = "agent:main:taken"
    asked = {"agentId": "fussy", "parallel": True, "requester": {"sessionKey": main}}
    aside = server.spawn_in_background(task=["a", "b", "c"], label="held", **asked)
    held = scripts_at_work(server, main, 3)
    problem = batch(server, "d", "e", "f", session=main, agentId="plain").json()
    assert problem["detail"] == (
        "sessions_spawn has reached max active children for this session (3/5):"
        " 3 tasks need 3 places"
    )
    assert places(server, main) == 3
    accepted(batch(server, "d", "e", session=main, agentId="plain"))
    for one in held:
        server.let_go(one["runId"])
    for one in accepted(aside.answer())["runs"]:
        assert server.run(one["runId"], "announced")["outcome"] == "success"


@pytest.mark.server
def test_a_step_that_cannot_be_taken_refuses_all_and_nothing_is_left(server: Server) -> None:
    main, place = "agent:main:step", server.folder.parent / "made"
    place.write_text("of somebody else")
    try:
        answer = batch(server, *THREE, session=main, agentId="maker", label="m")
    finally:
        place.unlink()
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert problem["rule"] == "workspace"
    rules = Counter(one["rule"] for one in runs_of(server, main))
    assert rules == {"workspace": 1, "batch": 2}
    assert places(server, main) == 0
    assert not place.exists()


def first_of(server: Server, main: str) -> tuple[str, Any]:
    """A batch of one that is held while it is prepared, and who waits for its answer."""
    aside = server.spawn_in_background(
        task=["first"], parallel=True, agentId="fussy", label="held", session=main
    )
    (run,) = scripts_at_work(server, main, 1)
    return str(run["runId"]), aside


@pytest.mark.server
def test_all_of_a_batch_wait_and_are_queued_when_it_is_done(server: Server) -> None:
    main = "agent:main:chained"
    first, aside = first_of(server, main)
    answer = batch(
        server, "a", "b", session=main, agentId="plain", label="then", chainAfter="held-1"
    )
    assert answer.status_code == 201, answer.text
    ids = [one["runId"] for one in answer.json()["runs"]]
    for run_id in ids:
        waiting = server.run(run_id)
        assert waiting["status"] == "waiting"
        assert [one["runId"] for one in waiting["dependsOn"]] == [first]
    _, created, *_ = appends(server, *ids)
    assert Counter(created)["SessionCreated"] == Counter(created)["RunWaits"] == 2
    assert "RunQueued" not in created
    server.let_go(first)
    assert aside.answer().status_code == 201
    for run_id in ids:
        assert server.run(run_id, "announced")["outcome"] == "success"
    assert places(server, main) == 0


@pytest.mark.server
def test_what_a_batch_waits_for_fails_while_it_is_prepared(server: Server) -> None:
    main = "agent:main:in-vain"
    first, aside = first_of(server, main)
    later = server.spawn_in_background(
        task=["a", "b"],
        parallel=True,
        agentId="fussy",
        label="held-too",
        dependsOn=[first],
        session=main,
    )
    second, third = scripts_at_work(server, main, 3)[1:]
    server.http.post(f"/v1/runs/{first}/stop", json={})
    assert aside.answer().json()["rule"] == "stopped"
    for one in (second, third):
        server.let_go(one["runId"])
    answer = later.answer()
    assert answer is not None
    problem = answer.json()
    assert problem["rule"] == "dependency_failed"
    refused = [server.run(one["runId"]) for one in (second, third)]
    assert Counter(one["rule"] for one in refused) == {"dependency_failed": 1, "batch": 1}
    assert places(server, main) == 0


@pytest.mark.server
def test_a_batch_that_names_nobody_is_refused_as_a_whole(server: Server) -> None:
    main = "agent:main:nobody"
    problem = batch(server, "a", "b", session=main, agentId="plain", dependsOn=["ghost"]).json()
    assert problem["rule"] == "dependency_unknown"
    assert [one["rule"] for one in runs_of(server, main)] == ["dependency_unknown"] * 2


@pytest.mark.server
def test_what_earlier_runs_found_is_given_to_all(server: Server) -> None:
    main = "agent:main:given"
    found = server.accepted("plain", label="research", session=main)
    server.run(found, "announced")
    shared = {"$research": "reference"}
    answer = batch(server, "a", "b", session=main, agentId="plain", sharedContext=shared)
    assert answer.status_code == 201, answer.text
    for one in answer.json()["runs"]:
        server.run(one["runId"], "announced")
        own = server.http.get(f"/v1/runs/{one['runId']}/shared-context").json()
        assert own["values"] == {"research": "done"}


MOMENTS = ("before", "after")
MADE = ["before step:workspace", "after step:workspace"]


def killed(server: Server, moment: str, **body: Any) -> Any:
    """The answer to a request whose server died on it, asked again with the same key."""
    key = f"{moment} {body['agentId']}"
    main = f"agent:main:{key.replace(' ', '-').replace(':', '-').lower()}"
    asked = {"requester": {"sessionKey": main}, "parallel": True, **body}
    server.die_at(moment)
    server.spawn_unanswered(key, task=["a", "b", "c"], **asked)
    server.wait_death()
    server.restart()
    return main, server.spawn_again(key, task=["a", "b", "c"], **asked)


def require_whole_batches(server: Server, main: str) -> list[dict[str, Any]]:
    """No batch of the session has a part: each was admitted by one append, and created or refused
    by one."""
    runs = runs_of(server, main)
    for batch_id in {one["batchId"] for one in runs}:
        members = [one["runId"] for one in runs if one["batchId"] == batch_id]
        recorded = appends(server, *members)
        for type_ in ("SpawnRequested", "SessionCreated", "SpawnRefused", "PreparationResumed"):
            of_type = [Counter(one)[type_] for one in recorded if type_ in one]
            assert set(of_type) <= {len(members)}, (type_, of_type)
    return runs


@pytest.mark.kill
@pytest.mark.parametrize("moment", nightly_but(MOMENTS, ["after"]))
@pytest.mark.parametrize(
    ("name", "agent_id"),
    nightly_but(
        [
            ("SpawnRequested", "plain"),
            ("ScriptsResolved", "fussy"),
            ("StepBegun", "maker"),
            ("StepTaken", "maker"),
            ("SessionCreated", "plain"),
            ("SessionCreated", "fussy"),
            ("RunClaimed", "plain"),
        ],
        [("SpawnRequested", "plain"), ("StepTaken", "maker")],
    ),
)
def test_all_of_a_batch_come_to_their_end(
    server: Server, moment: str, name: str, agent_id: str
) -> None:
    main, answer = killed(server, f"{moment} {name}", agentId=agent_id, label=agent_id)
    assert answer.status_code == 201, answer.text
    ids = [one["runId"] for one in answer.json()["runs"]]
    ended = [server.run(one, "announced") for one in ids]
    # For `plain` nothing has to be asked or made: it is recorded as a whole, its start included,
    # and what may have executed is not executed again.
    had_started = (moment, agent_id) == ("after", "plain")
    assert [one["outcome"] for one in ended] == ["error" if had_started else "success"] * 3
    assert [one["task"] for one in ended] == ["a", "b", "c"]
    assert len(require_whole_batches(server, main)) == 3
    assert places(server, main) == 0
    assert len(server.inbox(main)) == 3


@pytest.mark.kill
@pytest.mark.nightly
@pytest.mark.parametrize("moment", MADE)
def test_a_folder_that_is_made_twice_is_there_for_all(server: Server, moment: str) -> None:
    main, answer = killed(server, moment, agentId="maker", label="m")
    assert answer.status_code == 201, answer.text
    for one in answer.json()["runs"]:
        assert server.run(one["runId"], "announced")["outcome"] == "success"
    require_whole_batches(server, main)


@pytest.mark.kill
@pytest.mark.parametrize(
    "moment", nightly_but(["before SpawnRefused", "after SpawnRefused"], ["after SpawnRefused"])
)
def test_a_batch_is_refused_as_a_whole_and_told_once(server: Server, moment: str) -> None:
    main, answer = killed(server, moment, agentId="fussy", label="bad")
    assert answer.status_code == 422, answer.text
    runs = require_whole_batches(server, main)
    assert [one["rule"] for one in runs] == ["batch", "runtime", "batch"]
    problem = answer.json()
    assert (problem["runId"], problem["rule"]) == (runs[1]["runId"], "runtime")
    assert places(server, main) == 0
    told = server.inbox(main)
    if moment == "before SpawnRefused":
        # Nobody was there any more to be told.
        assert [one["runId"] for one in told] == [runs[1]["runId"]]
        assert "No task of this batch was started." in told[0]["text"]
    else:
        assert told == []


@pytest.mark.kill
def test_a_refusal_at_the_admission_is_told_again(server: Server) -> None:
    asked = {"mode": "session", "parallel": True, "requester": {"sessionKey": "agent:main:gone"}}
    server.die_at("after SpawnRefused")
    server.spawn_unanswered("gone", task=["a", "b"], **asked)
    server.wait_death()
    server.restart()
    answer = server.spawn_again("gone", task=["a", "b"], **asked)
    assert answer.json()["rule"] == "mode"
    assert [one["rule"] for one in require_whole_batches(server, "agent:main:gone")] == ["mode"] * 2


@pytest.mark.kill
@pytest.mark.nightly
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_batch_that_is_stopped_while_it_is_prepared_is_stopped(
    server: Server, moment: str
) -> None:
    main = f"agent:main:stopped-{moment}"
    aside = server.spawn_in_background(
        task=["a", "b"], parallel=True, agentId="fussy", label="held",
        session=main, key=main,
    )  # fmt: skip
    first, _ = scripts_at_work(server, main, 2)
    server.die_at(f"{moment} SpawnRefused")
    stop = {"Idempotency-Key": f"stop {moment}"}
    path = f"/v1/runs/{first['runId']}/stop"
    asked = Background(lambda: server.http.post(path, json={}, headers=stop))
    server.wait_death()
    assert asked.answer() is None
    assert aside.answer() is None
    server.restart()
    assert server.http.post(path, json={}, headers=stop).status_code == 200
    assert [one["rule"] for one in require_whole_batches(server, main)] == ["stopped", "batch"]
    assert places(server, main) == 0

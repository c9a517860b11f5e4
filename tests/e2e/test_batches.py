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

PLACES = 5

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
    """Return a configuration with these agents: `plain` needs nothing; a script decides about
    `fussy`; `maker` gets its own folder; `broken` cannot run.
    """
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
    """Return a running server that has made nothing yet."""
    one_server.ensure_running()
    shutil.rmtree(one_server.folder.parent / "made", ignore_errors=True)
    return one_server


def asked(name: str, agent_id: str, *tasks: str, **body: Any) -> dict[str, Any]:
    """Return a request of the session `agent:main:<name>` for a run for each task."""
    whole = {"session": f"agent:main:{name}", "agentId": agent_id, "parallel": True, **body}
    return {"task": list(tasks or "abc"), **whole}


def accepted(answer: httpx2.Response | None) -> list[str]:
    """Return the ids of the runs of a request, which must be accepted."""
    assert answer is not None
    assert answer.status_code == 201, answer.text
    return [str(run["runId"]) for run in answer.json()["runs"]]


def refused(answer: httpx2.Response | None, rule: str) -> dict[str, Any]:
    """Return the problem of a request, which must be refused by this rule."""
    assert answer is not None
    assert answer.json()["rule"] == rule, answer.text
    return dict(answer.json())


def runs_of(server: Server, name: str) -> list[dict[str, Any]]:
    """Return all runs of a session in the order of their labels."""
    runs = server.runs(requester=f"agent:main:{name}")
    return sorted(runs, key=lambda run: str(run["label"]))


def rules(server: Server, name: str) -> list[str]:
    return [run["rule"] for run in runs_of(server, name)]


def appends(server: Server, *run_ids: str) -> list[Counter[str]]:
    """Return the events of these runs and of their places, append by append."""
    found: dict[int, Counter[str]] = {}
    for event in server.whole_log():
        if event["runId"] in run_ids:
            found.setdefault(event["appendLast"], Counter())[event["type"]] += 1
    return list(found.values())


def scripts_at_work(server: Server, name: str, count: int) -> list[dict[str, Any]]:
    """Return the runs of a session, once this many of their scripts wait."""

    def at_work() -> list[dict[str, Any]] | None:
        runs = runs_of(server, name)
        waiting = [run for run in runs if (server.folder / f"at.{run['runId']}").exists()]
        return runs if len(waiting) == count else None

    return wait_for("the scripts to be at work", at_work)


def require_free(server: Server, name: str) -> None:
    """Require that no place of a session is taken."""
    assert server.session(f"agent:main:{name}")["activeChildren"] == 0


def stop(server: Server, run: dict[str, Any], **headers: str) -> httpx2.Response:
    return server.http.post(f"/v1/runs/{run['runId']}/stop", json={}, headers=headers)


@pytest.mark.server
def test_batch_is_admitted_and_created_in_one_append_each(server: Server) -> None:
    ids = accepted(server.spawn(**asked("each", "plain", label="count")))
    ended = [server.run(run_id, "announced") for run_id in ids]
    assert [run["label"] for run in ended] == ["count-1", "count-2", "count-3"]
    assert {run["outcome"] for run in ended} == {"success"}
    assert len({run["batchId"] for run in ended}) == 1
    admitted, created, *_ = appends(server, *ids)
    assert admitted == {"SessionObserved": 1, "SpawnRequested": 3, "ChildAdmitted": 3}
    steps = ("ScriptsResolved", "PreparationStarted", "SessionCreated", "SessionObserved")
    assert created == dict.fromkeys([*steps, "RunQueued"], 3)
    require_free(server, "each")
    assert len(server.inbox("agent:main:each")) == 3


@pytest.mark.server
def test_task_that_cannot_be_prepared_refuses_all(server: Server) -> None:
    problem = refused(server.spawn(**asked("bad", "fussy", label="bad")), "runtime")
    first, second, third = runs_of(server, "bad")
    assert (problem["runId"], problem["batchId"]) == (second["runId"], second["batchId"])
    assert problem["errors"] == [{"pointer": "/task/1", "detail": problem["detail"]}]
    assert rules(server, "bad") == ["batch", "runtime", "batch"]
    text = problem["detail"].rstrip(".")
    for run in (first, third):
        assert server.run(run["runId"])["error"] == (
            f'Task 2 of 3 ("bad-2", run {second["runId"]}) could not be prepared: {text}.'
            " No task of this batch was started."
        )
    require_free(server, "bad")
    # The caller got the refusal, so the inbox is empty.
    assert server.inbox("agent:main:bad") == []
    (refusal,) = [
        append
        for append in appends(server, *(item["runId"] for item in (first, second, third)))
        if "SpawnRefused" in append
    ]
    assert refusal["SpawnRefused"] == refusal["ChildReleased"] == 3


@pytest.mark.server
def test_refused_task_breaks_off_scripts_of_others(server: Server) -> None:
    aside = server.spawn_in_background(**asked("mixed", "fussy", "a", "b", label="mixed"))
    runs = wait_for("both", lambda: found if len(found := runs_of(server, "mixed")) == 2 else [])
    script = Path("/proc", server.note(f"at.{runs[0]['runId']}").strip())
    # Scripts of a spawn have 30 seconds in all.
    wait_for("its script to be broken off", lambda: not script.exists(), seconds=15)
    assert refused(aside.answer(), "runtime")["runId"] == runs[1]["runId"]
    assert rules(server, "mixed") == ["batch", "runtime"]
    require_free(server, "mixed")


@pytest.mark.server
def test_stop_of_one_that_is_prepared_refuses_all(server: Server) -> None:
    body = asked("late", "fussy", "a", "b", label="held")
    aside = server.spawn_in_background(key="late", **body)
    first, second = scripts_at_work(server, "late", 2)
    again = server.spawn(key="late", **body).json()
    assert (again["code"], again["runId"]) == ("idempotency_in_flight", first["runId"])
    assert stop(server, second).status_code == 200
    problem = refused(aside.answer(), "stopped")
    assert (problem["runId"], problem["batchId"]) == (second["runId"], first["batchId"])
    assert problem["errors"][0]["pointer"] == "/task/1"
    assert rules(server, "late") == ["batch", "stopped"]
    require_free(server, "late")


@pytest.mark.server
def test_stop_of_session_stops_batch_that_is_prepared(server: Server) -> None:
    aside = server.spawn_in_background(**asked("stopped", "fussy", label="held"))
    scripts_at_work(server, "stopped", 3)
    server.stop_session("agent:main:stopped")
    refused(aside.answer(), "stopped")
    assert Counter(rules(server, "stopped")) == {"stopped": 1, "batch": 2}


@pytest.mark.server
def test_two_batches_for_too_few_places_admit_one(server: Server) -> None:
    asides = [
        server.spawn_in_background(**asked("race", "fussy", label=label))
        for label in ("held-one", "held-other")
    ]
    for script in scripts_at_work(server, "race", 3):
        server.let_go(script["runId"])
    answers = [aside.answer() for aside in asides]
    assert sorted(response.status_code for response in answers if response is not None) == [
        201,
        403,
    ]
    ids = {run["runId"] for run in runs_of(server, "race")}
    admitted = [event for event in server.whole_log() if event["type"] == "ChildAdmitted"]
    counts = [event["payload"]["activeChildren"] for event in admitted if event["runId"] in ids]
    assert counts == [0, 1, 2]


@pytest.mark.server
def test_step_that_cannot_be_taken_refuses_all(server: Server) -> None:
    place = server.folder.parent / "made"
    place.write_text("of somebody else")
    try:
        refused(server.spawn(**asked("step", "maker")), "workspace")
    finally:
        place.unlink()
    assert Counter(rules(server, "step")) == {"workspace": 1, "batch": 2}
    require_free(server, "step")
    assert not place.exists()


@pytest.mark.server
@pytest.mark.parametrize("is_stopped", [False, True])
def test_batch_waits_for_run_that_is_prepared(server: Server, is_stopped: bool) -> None:
    name = f"chained-{is_stopped}".lower()
    aside = server.spawn_in_background(**asked(name, "fussy", "first", label="held"))
    (first,) = scripts_at_work(server, name, 1)
    if is_stopped:
        # The dependency fails while the runs that wait for it are prepared.
        body = asked(name, "fussy", "a", "b", label="held-too", dependsOn=[first["runId"]])
        later = server.spawn_in_background(**body)
        behind = scripts_at_work(server, name, 3)[1:]
        stop(server, first)
        refused(aside.answer(), "stopped")
        for run in behind:
            server.let_go(run["runId"])
        refused(later.answer(), "dependency_failed")
        found = Counter(server.run(item["runId"])["rule"] for item in behind)
        assert found == {"dependency_failed": 1, "batch": 1}
    else:
        body = asked(name, "plain", "a", "b", label="then", chainAfter="held-1")
        ids = accepted(server.spawn(**body))
        assert {server.run(run_id)["status"] for run_id in ids} == {"waiting"}
        _, created, *_ = appends(server, *ids)
        assert (created["SessionCreated"], created["RunWaits"], created["RunQueued"]) == (2, 2, 0)
        server.let_go(first["runId"])
        accepted(aside.answer())
        for run_id in ids:
            assert server.run(run_id, "announced")["outcome"] == "success"
    require_free(server, name)


# Killed.


def killed(server: Server, moment: str, agent_id: str, label: str) -> tuple[str, httpx2.Response]:
    """Let the server die on a batch. Return its session, and the answer to the same request."""
    key = f"{moment} {agent_id}"
    name = key.replace(" ", "-").replace(":", "-").lower()
    body = asked(name, agent_id, label=label)
    server.die_during(moment, key=key, **body)
    server.restart()
    return name, server.spawn_again(key, **body)


def require_whole_batches(server: Server, name: str) -> list[dict[str, Any]]:
    """Require that no batch of the session has a part: each was admitted by one append, and created
    or refused by one. Return its runs."""
    runs = runs_of(server, name)
    for batch_id in {run["batchId"] for run in runs}:
        members = [run["runId"] for run in runs if run["batchId"] == batch_id]
        for recorded in appends(server, *members):
            for name in ("SpawnRequested", "SessionCreated", "SpawnRefused", "PreparationResumed"):
                assert recorded[name] in (0, len(members)), (name, recorded)
    return runs


KILLED = [
    (f"{when} {case}", agent_id)
    for when in ("before", "after")
    for case, agent_id in (
        ("SpawnRequested", "plain"),
        ("ScriptsResolved", "fussy"),
        ("StepBegun", "maker"),
        ("step:workspace", "maker"),
        ("StepTaken", "maker"),
        ("SessionCreated", "plain"),
        ("SessionCreated", "fussy"),
        ("RunClaimed", "plain"),
    )
]
REFUSED = ("before SpawnRefused", "after SpawnRefused")


@pytest.mark.kill
@pytest.mark.parametrize(
    ("moment", "agent_id"),
    nightly_but(KILLED, [("after SpawnRequested", "plain"), ("after StepTaken", "maker")]),
)
def test_killed_batch_comes_to_its_end(server: Server, moment: str, agent_id: str) -> None:
    name, answer = killed(server, moment, agent_id, agent_id)
    ended = [server.run(run_id, "announced") for run_id in accepted(answer)]
    # A spawn of `plain` needs no script and no folder, so one transaction records it with its
    # start. A run that may have executed is not executed again.
    had_started = moment.startswith("after") and agent_id == "plain"
    assert [run["outcome"] for run in ended] == ["error" if had_started else "success"] * 3
    assert [run["task"] for run in ended] == ["a", "b", "c"]
    assert len(require_whole_batches(server, name)) == 3
    require_free(server, name)
    assert len(server.inbox(f"agent:main:{name}")) == 3


@pytest.mark.kill
@pytest.mark.parametrize("moment", nightly_but(REFUSED, ["after SpawnRefused"]))
def test_killed_refusal_is_whole_and_told_once(server: Server, moment: str) -> None:
    name, answer = killed(server, moment, "fussy", "bad")
    problem = refused(answer, "runtime")
    runs = require_whole_batches(server, name)
    assert [run["rule"] for run in runs] == ["batch", "runtime", "batch"]
    assert problem["runId"] == runs[1]["runId"]
    require_free(server, name)
    announcements = [(run["runId"], run["text"]) for run in server.inbox(f"agent:main:{name}")]
    if moment.startswith("before"):
        # The caller was gone, so the refusal is announced.
        ((run_id, text),) = announcements
        assert run_id == runs[1]["runId"]
        assert "No task of this batch was started." in text
    else:
        assert announcements == []


@pytest.mark.kill
def test_killed_refusal_at_admission_is_told_again(server: Server) -> None:
    body = asked("gone", "plain", mode="session")
    server.die_during("after SpawnRefused", key="gone", **body)
    server.restart()
    refused(server.spawn_again("gone", **body), "mode")
    assert [item["rule"] for item in require_whole_batches(server, "gone")] == ["mode"] * 3


@pytest.mark.kill
@pytest.mark.nightly
@pytest.mark.parametrize("moment", REFUSED)
def test_killed_stop_of_batch_that_is_prepared_stops_it(server: Server, moment: str) -> None:
    name = f"stopped-{moment}".lower().replace(" ", "-")
    aside = server.spawn_in_background(key=name, **asked(name, "fussy", "a", "b", label="held"))
    first, _ = scripts_at_work(server, name, 2)
    server.die_at(moment)
    key = {"Idempotency-Key": f"stop {moment}"}
    stopping = Background(lambda: stop(server, first, **key))
    server.wait_death()
    assert stopping.answer() is None
    assert aside.answer() is None
    server.restart()
    assert stop(server, first, **key).status_code == 200
    assert [item["rule"] for item in require_whole_batches(server, name)] == ["stopped", "batch"]
    require_free(server, name)

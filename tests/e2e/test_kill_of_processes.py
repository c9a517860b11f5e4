"""Servers, databases and children that are killed or told to stop: nothing is left or lost."""

import contextlib
import json
import time
from typing import Any

import pytest

from tests.support.servers.data_directories import busy_with
from tests.support.servers.embedded_servers import kill, postmaster_of
from tests.support.servers.process_table import is_alive
from tests.support.servers.server import Server
from tests.support.servers.stories import DRAIN_SECONDS, WIDTH
from tests.support.waiting import wait_for


def requester(key: str) -> dict[str, str]:
    return {"sessionKey": f"agent:main:{key}"}


def of(key: str, **body: Any) -> dict[str, Any]:
    return {"requester": requester(key), "cleanup": "delete", **body}


@pytest.mark.kill
def test_no_process_of_a_child_outlives_the_server(mortal: Server) -> None:
    run_id = mortal.accepted("daemon", **of("daemon"))
    child, grandchild = (int(mortal.note(name)) for name in ("child", "grandchild"))
    assert is_alive(child)
    assert is_alive(grandchild)
    mortal.kill()
    wait_for("the child to be killed", lambda: not is_alive(child), seconds=5)
    wait_for("the grandchild to be killed", lambda: not is_alive(grandchild), seconds=5)
    mortal.start()
    run = mortal.run(run_id, "archived")
    assert (run["stage"], run["outcome"]) == ("archived", "error")
    assert run["error"].startswith("interrupted: ")
    (told,) = mortal.inbox("agent:main:daemon")
    assert "Notes: interrupted: " in told["text"]


@pytest.mark.kill
def test_no_script_outlives_the_server_and_the_spawn_goes_on(mortal: Server) -> None:
    body = of("scripts", agentId="slow")
    aside = mortal.spawn_in_background(key="scripts", **body)
    run_id = mortal.preparing("agent:main:scripts")
    note = mortal.folder / f"slow.{run_id}"
    script = int(mortal.note(note.name))
    note.unlink()
    mortal.kill()
    assert aside.answer() is None
    wait_for("the script to be killed", lambda: not is_alive(script), seconds=5)
    mortal.start()
    mortal.note(note.name)
    in_flight = mortal.spawn(key="scripts", **body)
    assert (in_flight.status_code, in_flight.json()["code"]) == (409, "idempotency_in_flight")
    mortal.let_go(run_id)
    assert mortal.spawn_again("scripts", **body).json()["runId"] == run_id
    run = mortal.run(run_id, "archived")
    assert run["outcome"] == "success"
    # The script can tell that it was run before.
    message = mortal.http.get(f"/v1/runs/{run_id}/prompt").json()["message"]
    assert "attempt 2" in message
    assert len(mortal.inbox("agent:main:scripts")) == 1


@pytest.mark.kill
def test_a_killed_database_comes_back_and_every_run_ends(mortal: Server) -> None:
    key = "agent:main:database"
    running = mortal.accepted("waiter", **of("database"))
    mortal.note(f"{running}.began")
    preparing = of("database", agentId="slow", contextPreamble="mind the tide")
    aside = mortal.spawn_in_background(key="database", **preparing)
    prepared = mortal.preparing(key)
    mortal.note(f"slow.{prepared}")
    kill(postmaster_of(mortal.data_dir / "postgres"))
    mortal.let_go(prepared)
    mortal.let_go(running)
    answer = aside.answer()
    assert answer is not None
    assert answer.status_code in (201, 503), answer.text
    afterwards = wait_for("a spawn to be accepted again", lambda: _accepted(mortal))
    for run_id in (running, prepared, afterwards):
        run = mortal.run(run_id, "archived")
        assert run["stage"] == "archived", run
        if run["outcome"] != "success":
            assert run["error"].startswith("interrupted: ")
    assert mortal.run(afterwards)["outcome"] == "success"
    told = [one["runId"] for one in mortal.inbox(key)]
    assert sorted(told) == sorted({running, prepared, afterwards})
    assert mortal.session(key)["activeChildren"] == 0
    assert mortal.process is not None
    assert mortal.process.poll() is None


def _accepted(mortal: Server) -> str | None:
    answer = mortal.spawn(**of("database", agentId="plain"))
    assert answer.status_code in (201, 503), answer.text
    return str(answer.json()["runId"]) if answer.status_code == 201 else None


@pytest.mark.kill
def test_an_orchestrator_whose_child_was_lost_with_the_server_is_told_of(mortal: Server) -> None:
    foreign = mortal.accepted("plain", **of("strangers"))
    parent = mortal.accepted("orchestrator", f"help; foreign run: {foreign}", **of("family"))
    child = json.loads(mortal.note(f"{parent}.json"))["said"]["spawnOfItsOwn"][1]["runId"]
    mortal.note(f"{child}.began")
    assert mortal.run(parent, "ended")["outcome"] == "success"
    assert mortal.session("agent:main:family")["activeChildren"] == 1
    mortal.kill()
    mortal.start()
    assert mortal.run(parent, "archived")["outcome"] == "success"
    assert mortal.run(child)["outcome"] == "error"
    assert mortal.session("agent:main:family")["activeChildren"] == 0
    (told,) = mortal.inbox("agent:main:family")
    findings = told["text"].partition("Findings of its sub-agents:")[2]
    assert "Status: error: interrupted: " in findings


@pytest.mark.kill
def test_when_everything_dies_at_once_the_next_start_goes_on(mortal: Server) -> None:
    running = mortal.accepted("waiter", **of("dark"))
    mortal.note(f"{running}.began")
    ended = mortal.accepted("plain", **of("dark"))
    mortal.run(ended, "ended")
    everything = busy_with(mortal.data_dir.parent)
    assert mortal.process is not None
    assert {mortal.process.pid, postmaster_of(mortal.data_dir / "postgres")} <= set(everything)
    for pid in everything:
        with contextlib.suppress(ProcessLookupError):
            kill(pid)
    mortal.kill()
    mortal.start()
    assert mortal.run(ended, "archived")["outcome"] == "success"
    run = mortal.run(running, "archived")
    assert (run["outcome"], run["error"].partition(":")[0]) == ("error", "interrupted")
    told = [one["runId"] for one in mortal.inbox("agent:main:dark")]
    assert sorted(told) == sorted([running, ended])
    assert mortal.spawn(**of("dark", agentId="plain")).status_code == 201


STOP_SECONDS_MAX = DRAIN_SECONDS + 8


def body_of(key: str, **body: Any) -> dict[str, Any]:
    return {"requester": {"sessionKey": f"agent:main:{key}"}, "cleanup": "delete", **body}


def stopped(mortal: Server) -> None:
    """Wait for the end of a server that was told to stop; it ends in good order and in time."""
    began = time.monotonic()
    assert mortal.wait_exit() == 0, mortal.log()
    assert time.monotonic() - began < STOP_SECONDS_MAX


@pytest.mark.kill
def test_runs_have_time_to_end_and_are_interrupted_after_it(mortal: Server) -> None:
    body = body_of("drained")
    quick, endless = (mortal.accepted("waiter", **body) for _ in range(WIDTH))
    pid = int(mortal.note(f"{endless}.began"))
    mortal.note(f"{quick}.began")
    queued = mortal.accepted("plain", **body)
    mortal.terminate()
    wait_for("it to drain", lambda: mortal.http.get("/readyz").status_code == 503)
    refused = mortal.spawn(agentId="plain", **body)
    assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
    assert int(refused.headers["Retry-After"]) >= 1
    mortal.let_go(quick)
    stopped(mortal)
    assert not is_alive(pid)
    mortal.start()
    assert mortal.run(quick, "archived")["outcome"] == "success"
    run = mortal.run(endless, "archived")
    assert (run["outcome"], run["error"]) == ("error", "interrupted: server stopped")
    # One that waited in its lane is left to the next start.
    assert mortal.run(queued, "archived")["outcome"] == "success"
    told = [one["runId"] for one in mortal.inbox("agent:main:drained")]
    assert sorted(told) == sorted([quick, endless, queued])


@pytest.mark.kill
def test_a_spawn_that_is_prepared_is_left_to_the_next_start(mortal: Server) -> None:
    body = body_of("unprepared", agentId="slow")
    aside = mortal.spawn_in_background(key="unprepared", **body)
    run_id = mortal.preparing("agent:main:unprepared")
    note = mortal.folder / f"slow.{run_id}"
    script = int(mortal.note(note.name))
    note.unlink()
    mortal.terminate()
    stopped(mortal)
    answer = aside.answer()
    assert answer is not None
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert not is_alive(script)
    mortal.start()
    mortal.note(note.name)
    mortal.let_go(run_id)
    assert mortal.spawn_again("unprepared", **body).json()["runId"] == run_id
    assert mortal.run(run_id, "archived")["outcome"] == "success"
    assert mortal.events(run_id)[:2] == ["SpawnRequested", "PreparationResumed"]
    assert len(mortal.inbox("agent:main:unprepared")) == 1

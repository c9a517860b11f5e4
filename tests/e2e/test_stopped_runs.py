"""Stopping: a run that executes, one that waits in its lane, one that is being prepared."""

import threading
from typing import Any

import pytest

from tests.support.servers.process_table import is_alive
from tests.support.servers.server import Server
from tests.support.servers.stories import WIDTH
from tests.support.waiting import wait_for

pytestmark = pytest.mark.kill


def requester(key: str) -> dict[str, object]:
    return {"sessionKey": f"agent:main:{key}"}


def stop(server: Server, run_id: str, reason: str | None = None) -> dict[str, Any]:
    body = {"reason": reason} if reason else {}
    answer = server.http.post(f"/v1/runs/{run_id}/stop", json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_a_run_that_executes_is_killed_and_its_requester_is_told_by_whom(server: Server) -> None:
    run_id = server.accepted("waiter", requester=requester("stopped"), cleanup="delete")
    pid = int(server.note(f"{run_id}.began"))
    assert stop(server, run_id, "enough is enough") == {"runId": run_id, "wasOver": False}
    run = server.run(run_id, "archived")
    assert (run["status"], run["outcome"]) == ("stopped", "stopped")
    assert not is_alive(pid)
    events = server.events(run_id)
    assert events[-4:] == ["StopRequested", "RunEnded", "RunAnnounced", "RunArchived"]
    (entry,) = server.inbox("agent:main:stopped")
    assert entry["text"].startswith("Status: error\n")
    assert "Notes: stopped by admin: enough is enough\n" in entry["text"]
    assert stop(server, run_id, "again")["wasOver"] is True
    assert server.events(run_id) == events


def test_a_run_that_waits_in_its_lane_is_over_at_once(server: Server) -> None:
    key = requester("in-line")
    running = [server.accepted("waiter", requester=key) for _ in range(WIDTH)]
    for one in running:
        server.run(one, "started")
    waiting = server.accepted("waiter", requester=key)
    assert server.run(waiting)["status"] == "queued"
    stop(server, waiting, "no longer needed")
    run = server.run(waiting)
    assert run["outcome"] == "stopped"
    assert run["startedAt"] is None
    server.run(waiting, "announced")
    assert "RunClaimed" not in server.events(waiting)
    (entry,) = server.inbox("agent:main:in-line")
    assert "Notes: stopped by admin: no longer needed\n" in entry["text"]
    # Its place is free while the others go on.
    assert server.session("agent:main:in-line")["activeChildren"] == WIDTH
    for one in running:
        server.let_go(one)
        assert server.run(one, "ended")["outcome"] == "success"


def test_a_spawn_that_is_prepared_is_refused_and_its_scripts_are_killed(server: Server) -> None:
    answers: list[Any] = []
    asking = threading.Thread(
        target=lambda: answers.append(
            server.spawn(requester=requester("hasty"), agentId="slow", key="hasty-1")
        )
    )
    asking.start()
    query = {"requester": "agent:main:hasty", "stage": "requested"}
    (found,) = wait_for(
        "the spawn", lambda: server.http.get("/v1/runs", params=query).json()["items"]
    )
    run_id = found["runId"]
    script = int(server.note(f"slow.{run_id}"))
    assert is_alive(script)
    stop(server, run_id)
    asking.join(20)
    (answer,) = answers
    assert answer.status_code == 422
    assert (answer.json()["code"], answer.json()["rule"]) == ("spawn_error", "stopped")
    assert answer.json()["runId"] == run_id
    wait_for("the script to be killed", lambda: not is_alive(script), seconds=5)
    assert server.run(run_id)["status"] == "refused"
    assert server.events(run_id) == ["SpawnRequested", "SpawnRefused"]
    assert server.session("agent:main:hasty")["activeChildren"] == 0
    again = server.spawn(requester=requester("hasty"), agentId="slow", key="hasty-1")
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json() == answer.json()

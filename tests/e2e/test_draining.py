"""SIGTERM: what can end in time ends, the rest is interrupted or left for the next start."""

import time
from typing import Any

import pytest

from tests.support.servers.process_table import is_alive
from tests.support.servers.server import Server
from tests.support.servers.stories import DRAIN_SECONDS, WIDTH
from tests.support.waiting import wait_for

pytestmark = pytest.mark.kill

STOP_SECONDS_MAX = DRAIN_SECONDS + 8


def of(key: str, **body: Any) -> dict[str, Any]:
    return {"requester": {"sessionKey": f"agent:main:{key}"}, "cleanup": "delete", **body}


def stopped(mortal: Server) -> None:
    """Wait for the end of a server that was told to stop; it ends in good order and in time."""
    began = time.monotonic()
    assert mortal.wait_exit() == 0, mortal.log()
    assert time.monotonic() - began < STOP_SECONDS_MAX


def test_runs_have_time_to_end_and_are_interrupted_after_it(mortal: Server) -> None:
    body = of("drained")
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


def test_a_spawn_that_is_prepared_is_left_to_the_next_start(mortal: Server) -> None:
    body = of("unprepared", agentId="slow")
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

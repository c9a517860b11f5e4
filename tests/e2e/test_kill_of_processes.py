"""Servers, databases and children that are killed or stopped: nothing is left or lost."""

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders.launches import program
from tests.support.servers.configurations import agent, configuration
from tests.support.servers.data_directories import busy_with
from tests.support.servers.databases import Databases
from tests.support.servers.embedded_servers import kill, postmaster_of
from tests.support.servers.process_table import carrying, is_alive
from tests.support.servers.server import QUICK_LEASE_SECONDS, Server, serving
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
    (announcement,) = mortal.inbox("agent:main:daemon")
    assert "Notes: interrupted: " in announcement["text"]


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
    run_ids = [run["runId"] for run in mortal.inbox(key)]
    assert sorted(run_ids) == sorted({running, prepared, afterwards})
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
    (announcement,) = mortal.inbox("agent:main:family")
    findings = announcement["text"].partition("Findings of its sub-agents:")[2]
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
    run_ids = [run["runId"] for run in mortal.inbox("agent:main:dark")]
    assert sorted(run_ids) == sorted([running, ended])
    assert mortal.spawn(**of("dark", agentId="plain")).status_code == 201


STOP_SECONDS_MAX = DRAIN_SECONDS + 8


def require_stop(server: Server) -> None:
    """Wait for the end of a stopping server; assert that it ends properly and in time."""
    began = time.monotonic()
    assert server.wait_exit() == 0, server.log()
    assert time.monotonic() - began < STOP_SECONDS_MAX


@pytest.mark.kill
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
    require_stop(mortal)
    assert not is_alive(pid)
    mortal.start()
    assert mortal.run(quick, "archived")["outcome"] == "success"
    run = mortal.run(endless, "archived")
    assert (run["outcome"], run["error"]) == ("error", "interrupted: server stopped")
    # A queued run is left to the next start.
    assert mortal.run(queued, "archived")["outcome"] == "success"
    run_ids = [run["runId"] for run in mortal.inbox("agent:main:drained")]
    assert sorted(run_ids) == sorted([quick, endless, queued])


TOKEN = "script-that-outlives-its-server-of-these-tests"
# Ignores signals, and starts a daemon in another group that keeps its output open.
SCRIPT = f"""#!{sys.executable} -IS
import os, pathlib, signal, sys, time
attempt = os.environ["SPAWNLOG_ATTEMPT"]
if attempt == "1":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, ["{TOKEN}", "-IS", "-c", "import time; time.sleep(600)"])
        os._exit(0)
    pathlib.Path("@", "began").touch()
    while True:
        time.sleep(600)
print(f"attempt {{attempt}} for {{sys.argv[1:]}}")
"""


@pytest.mark.kill
@pytest.mark.parametrize("end", ["kill", "stop"])
def test_no_script_outlives_server_and_spawn_goes_on(databases: Databases, end: str) -> None:
    def config(folder: Path) -> dict[str, Any]:
        script = program(folder / "script", SCRIPT.replace("@", str(folder)))
        entry = {"id": "s", "uri": str(script), "timeoutSeconds": 60, "argMap": {"t": "task"}}
        main = agent("main", default=True)
        return configuration(
            main, contextScripts={"run": [entry]}, leaseSeconds=QUICK_LEASE_SECONDS
        )

    body = {"task": "first", "key": "scripts"}
    with serving(databases, config) as server:
        aside = server.spawn_in_background(**body)
        run_id = server.preparing("agent:main:main")
        wait_for("the script to begin", (server.folder / "began").exists)
        wait_for("its daemon", lambda: carrying(TOKEN))
        if end == "kill":
            server.kill()
            assert aside.answer() is None
        else:
            server.terminate()
            require_stop(server)
            answer = aside.answer()
            assert answer is not None
            assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
        wait_for("everybody to be gone", lambda: not carrying(TOKEN), seconds=5)
        server.start()
        assert server.spawn_again(**body).json()["runId"] == run_id
        assert server.run(run_id, "announced")["outcome"] == "success"
        assert server.events(run_id)[:3] == [
            "SpawnRequested",
            "PreparationResumed",
            "ScriptsResolved",
        ]
        # The script can tell that it was run before.
        message = server.prompt(run_id)["message"]
        assert message.endswith("first\n\nattempt 2 for ['t=first']")
        assert len(server.inbox()) == 1

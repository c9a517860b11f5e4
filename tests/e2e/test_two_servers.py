"""Two servers on one data directory: one PostgreSQL, one log, each takes over from the other."""

import signal
from typing import Any

import psycopg
import pytest

from infrastructure.contract.operations import ServeOptions
from infrastructure.outbound.embedded_postgres.data_directory import Home
from infrastructure.server.operations import rebuild
from tests.support.servers.embedded_servers import answers, keepers_of, server_is_gone
from tests.support.servers.process_table import is_alive
from tests.support.servers.server import Server
from tests.support.servers.stories import WIDTH
from tests.support.waiting import wait_for

pytestmark = pytest.mark.kill

KEY = "agent:main:orphans"


@pytest.fixture
def other(mortal: Server) -> Server:
    """Another server on the same data directory, not started yet."""
    return mortal.twin("other", dies=False)


def test_a_server_that_slept_past_its_lease_lets_go_of_what_others_took(
    mortal: Server, other: Server
) -> None:
    key = "agent:main:sleepy"
    body: dict[str, Any] = {"requester": {"sessionKey": key}, "cleanup": "delete"}
    run_id = mortal.accepted("waiter", **body)
    pid = int(mortal.note(f"{run_id}.began"))
    assert mortal.process is not None
    with other:
        mortal.process.send_signal(signal.SIGSTOP)
        try:
            run = other.run(run_id, "archived")
            assert (run["outcome"], run["error"].partition(":")[0]) == ("error", "interrupted")
        finally:
            mortal.process.send_signal(signal.SIGCONT)
        # It may not say a word about the run any more, and what it still executes is killed.
        wait_for("the child to be killed", lambda: not is_alive(pid), seconds=10)
        assert other.events(run_id).count("RunEnded") == 1
        assert len(other.inbox(key)) == 1
        for server in (mortal, other):
            assert server.run(server.accepted("echo", **body), "archived")["outcome"] == "success"


def test_a_server_takes_over_from_one_that_was_killed(mortal: Server, other: Server) -> None:
    postgres = mortal.data_dir / "postgres"
    body: dict[str, Any] = {"requester": {"sessionKey": KEY}, "cleanup": "delete"}
    running = [mortal.accepted("waiter", **body) for _ in range(WIDTH)]
    pids = [int(mortal.note(f"{run_id}.began")) for run_id in running]
    queued = mortal.accepted("plain", **body)
    aside = mortal.spawn_in_background(key="orphan", agentId="slow", **body)
    preparing = mortal.preparing(KEY)
    note = mortal.folder / f"slow.{preparing}"
    mortal.note(note.name)
    with other:
        assert len(keepers_of(postgres)) == 1
        logs = {one.http.get("/v1/lanes").headers["Spawnlog-Log"] for one in (mortal, other)}
        assert len(logs) == 1
        note.unlink()
        mortal.kill()
        assert aside.answer() is None
        wait_for("its children to be killed", lambda: not any(map(is_alive, pids)), seconds=5)
        for run_id in running:
            run = other.run(run_id, "archived")
            assert (run["stage"], run["outcome"]) == ("archived", "error")
            assert run["error"].startswith("interrupted: ")
        assert other.run(queued, "archived")["outcome"] == "success"
        other.note(note.name)
        other.let_go(preparing)
        assert other.run(preparing, "archived")["outcome"] == "success"
        again = other.spawn(key="orphan", agentId="slow", **body)
        assert (again.status_code, again.json()["runId"]) == (201, preparing)
        told = [one["runId"] for one in other.inbox(KEY)]
        assert sorted(told) == sorted([*running, queued, preparing])
        assert other.session(KEY)["activeChildren"] == 0
        # The database goes on for the one that is left, and ends with the last one.
        assert answers(Home.at(postgres).conninfo())
    assert server_is_gone(postgres)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(Home.at(postgres).conninfo())


def test_after_all_this_the_rows_made_anew_from_the_events_are_the_same(mortal: Server) -> None:
    body: dict[str, Any] = {"requester": {"sessionKey": "agent:main:anew"}}
    for agent_id, rest in (("echo", {}), ("failing", {"cleanup": "delete"})):
        mortal.run(mortal.accepted(agent_id, **body, **rest), "announced")
    mortal.kill()
    mortal.start()
    events = len(mortal.whole_log())
    mortal.stop()
    report = rebuild(ServeOptions(config=mortal.config, data_dir=mortal.data_dir))
    # What was due when it was asked to stop is still done on the way.
    assert report.events >= events
    assert report.runs > 1
    assert report.identical

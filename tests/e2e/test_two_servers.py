"""Two servers on one data directory take over from each other, sleep, or start with old rows."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from infrastructure.outbound.embedded_postgres.data_directory import Home
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from tests.support.servers.embedded_servers import (
    answers,
    keepers_of,
    postmaster_of,
    server_is_gone,
)
from tests.support.servers.process_table import children, is_alive
from tests.support.servers.server import QUICK_LEASE_SECONDS, Server
from tests.support.servers.stories import WIDTH
from tests.support.waiting import wait_for

KEY = "agent:main:orphans"


@pytest.fixture
def survivor(mortal: Server) -> Server:
    """Return another server on the same data directory, not started."""
    return mortal.twin("other", dies=False)


@pytest.mark.kill
def test_a_server_that_slept_past_its_lease_lets_go_of_what_others_took(
    mortal: Server, survivor: Server
) -> None:
    key = "agent:main:sleepy"
    body: dict[str, Any] = {"requester": {"sessionKey": key}, "cleanup": "delete"}
    run_id = mortal.accepted("waiter", **body)
    pid = int(mortal.note(f"{run_id}.began"))
    assert mortal.process is not None
    with survivor:
        mortal.process.send_signal(signal.SIGSTOP)
        try:
            run = survivor.run(run_id, "archived")
            assert (run["outcome"], run["error"].partition(":")[0]) == ("error", "interrupted")
        finally:
            mortal.process.send_signal(signal.SIGCONT)
        # It may record nothing more about the run, and its child is killed.
        wait_for("the child to be killed", lambda: not is_alive(pid), seconds=10)
        assert survivor.events(run_id).count("RunEnded") == 1
        assert len(survivor.inbox(key)) == 1
        for server in (mortal, survivor):
            assert server.run(server.accepted("echo", **body), "archived")["outcome"] == "success"


@pytest.mark.kill
def test_a_server_takes_over_from_one_that_was_killed(mortal: Server, survivor: Server) -> None:
    postgres = mortal.data_dir / "postgres"
    body: dict[str, Any] = {"requester": {"sessionKey": KEY}, "cleanup": "delete"}
    running = [mortal.accepted("waiter", **body) for _ in range(WIDTH)]
    pids = [int(mortal.note(f"{run_id}.began")) for run_id in running]
    queued = mortal.accepted("plain", **body)
    aside = mortal.spawn_in_background(key="orphan", agentId="slow", **body)
    preparing = mortal.preparing(KEY)
    note = mortal.folder / f"slow.{preparing}"
    mortal.note(note.name)
    with survivor:
        assert len(keepers_of(postgres)) == 1
        logs = {item.http.get("/v1/lanes").headers["Spawnlog-Log"] for item in (mortal, survivor)}
        assert len(logs) == 1
        note.unlink()
        mortal.kill()
        assert aside.answer() is None
        wait_for("its children to be killed", lambda: not any(map(is_alive, pids)), seconds=5)
        for run_id in running:
            run = survivor.run(run_id, "archived")
            assert (run["stage"], run["outcome"]) == ("archived", "error")
            assert run["error"].startswith("interrupted: ")
        assert survivor.run(queued, "archived")["outcome"] == "success"
        survivor.note(note.name)
        survivor.let_go(preparing)
        assert survivor.run(preparing, "archived")["outcome"] == "success"
        again = survivor.spawn(key="orphan", agentId="slow", **body)
        assert (again.status_code, again.json()["runId"]) == (201, preparing)
        run_ids = [run["runId"] for run in survivor.inbox(KEY)]
        assert sorted(run_ids) == sorted([*running, queued, preparing])
        assert survivor.session(KEY)["activeChildren"] == 0
        # The database keeps running for the remaining server, and ends with the last one.
        assert answers(Home.at(postgres).conninfo())
    assert server_is_gone(postgres)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(Home.at(postgres).conninfo())


def with_descendants(pid: int) -> Iterator[int]:
    yield pid
    for child in children(pid):
        yield from with_descendants(child)


def suspend(*servers: Server) -> None:
    """Stop everything for longer than a lease, resume it in the same order, and wait until a holder
    that did not renew its lease would have lost it again."""
    roots = [postmaster_of(servers[0].data_dir / "postgres")]
    roots += [server.process.pid for server in servers if server.process is not None]
    stopped: list[int] = []
    try:
        for root in roots:
            for pid in with_descendants(root):
                os.kill(pid, signal.SIGSTOP)
                stopped.append(pid)
        threading.Event().wait(QUICK_LEASE_SECONDS * 2)
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    threading.Event().wait(QUICK_LEASE_SECONDS * 1.5)


def waiting(server: Server, key: str) -> tuple[str, int]:
    """Return a running run, and the process id of its child."""
    body: dict[str, Any] = {"requester": {"sessionKey": f"agent:main:{key}"}}
    run_id = server.accepted("waiter", **body)
    return run_id, int(server.note(f"{run_id}.began"))


@pytest.mark.kill
def test_suspended_server_goes_on_with_its_run(mortal: Server) -> None:
    run_id, pid = waiting(mortal, "lid")
    suspend(mortal)
    assert is_alive(pid)
    mortal.let_go(run_id)
    run = mortal.run(run_id, "announced")
    assert (run["outcome"], run["error"]) == ("success", None)


@pytest.mark.kill
def test_suspended_servers_leave_each_other_their_runs(mortal: Server, survivor: Server) -> None:
    with survivor:
        runs = [
            (holder, *waiting(holder, f"lid-{n}")) for n, holder in enumerate((mortal, survivor))
        ]
        suspend(mortal, survivor)
        for server, run_id, pid in runs:
            assert is_alive(pid)
            server.let_go(run_id)
            run = server.run(run_id, "announced")
            assert (run["outcome"], run["error"]) == ("success", None)


STOP_SECONDS_MAX = 10.0
OLD = "as it was called before"


@pytest.fixture
def database(mortal: Server) -> Iterator[psycopg.Connection[Any]]:
    """Yield the database of a log with runs, and rows of an older version, without a server."""
    body: dict[str, Any] = {"requester": {"sessionKey": "agent:main:old rows"}}
    mortal.run(mortal.accepted("echo", **body), "announced")
    postgres = EmbeddedPostgres.start(mortal.data_dir / "postgres")
    try:
        mortal.stop()
        with psycopg.connect(postgres.conninfo, autocommit=True) as connection:
            connection.execute("UPDATE projections SET version = version - 1")
            connection.execute("UPDATE runs SET label = %s", [OLD])
            yield connection
    finally:
        postgres.close()


def _is_exchanging(connection: psycopg.Connection[Any]) -> bool:
    waiting = connection.execute(
        "SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted"
        " AND relation = 'runs'::regclass"
    )
    return waiting.fetchone() is not None


@pytest.mark.kill
def test_two_servers_that_start_at_once_serve_new_rows(
    mortal: Server, database: psycopg.Connection[Any]
) -> None:
    second_server = mortal.twin("beginner", dies=False)
    said_before = len(mortal.log())
    starting = threading.Thread(target=mortal.start)
    starting.start()
    with second_server:
        starting.join(60)
        for server in (mortal, second_server):
            query = {"requester": "agent:main:old rows"}
            (run,) = server.http.get("/v1/runs", params=query).json()["items"]
            assert run.get("label") is None
            assert server.run(server.accepted("echo"), "announced")["outcome"] == "success"
    output = mortal.log()[said_before:] + second_server.log()
    assert "are of an older version: rebuilding them" in output
    assert output.count("events rebuilt in") == 1


@pytest.mark.kill
def test_a_server_that_is_told_to_stop_meanwhile_stops_and_the_next_goes_on(
    mortal: Server, database: psycopg.Connection[Any]
) -> None:
    with psycopg.connect(database.info.dsn) as reader:
        reader.execute("SELECT count(*) FROM runs")
        starting = threading.Thread(target=_start_in_vain, args=(mortal,))
        starting.start()
        wait_for("the exchange of the tables", lambda: _is_exchanging(database))
        mortal.terminate()
        assert mortal.process is not None
        assert mortal.process.wait(STOP_SECONDS_MAX) == 0
        starting.join(60)
        folded = database.execute("SELECT min(position) FROM rebuilding").fetchone()
        assert folded is not None
        assert folded[0] > 0
    mortal.start()
    old = database.execute("SELECT count(*) FROM runs WHERE label = %s", [OLD]).fetchone()
    assert old == (0,)


def _start_in_vain(server: Server) -> None:
    with pytest.raises(AssertionError, match="it did not start"):
        server.start()


@pytest.mark.kill
def test_a_server_whose_rows_another_release_has_made_says_so_and_ends(mortal: Server) -> None:
    said_before = len(mortal.log())
    postgres = EmbeddedPostgres.start(mortal.data_dir / "postgres")
    try:
        with psycopg.connect(postgres.conninfo, autocommit=True) as connection:
            connection.execute("UPDATE projections SET version = version + 1")
            answer = mortal.spawn(agentId="echo")
            assert answer.status_code == 503
            assert "the rows now have another version" in answer.json()["detail"]
            assert mortal.process is not None
            assert mortal.process.wait(STOP_SECONDS_MAX * 3) == 0
            assert mortal.stop() == 0
            connection.execute("UPDATE projections SET version = version - 1")
    finally:
        postgres.close()
    assert "this server stops: the rows now have another version" in mortal.log()[said_before:]

"""Connections that break under the server, or are all in use, affect no run."""

import threading

import psycopg
import pytest

from infrastructure.outbound.embedded_postgres.data_directory import Home
from tests.support.servers.server import QUICK_LEASE_SECONDS, Server
from tests.support.servers.stories import CHILDREN_MAX
from tests.support.waiting import wait_for

pytestmark = pytest.mark.kill

REQUESTERS = 2
TIMES = 5
PAUSE_SECONDS = 0.3
QUESTIONS = 20

_BREAK = (
    "SELECT pid FROM pg_stat_activity"
    " WHERE application_name LIKE 'spawnlog%' AND pid <> pg_backend_pid()"
    " AND pg_terminate_backend(pid)"
)
_STILL_THERE = "SELECT 1 FROM pg_stat_activity WHERE pid = ANY(%s)"


class Breaking:
    """Ends every connection of the server, again and again, for a while."""

    def __init__(self, server: Server) -> None:
        self._conninfo = Home.at(server.data_dir / "postgres").conninfo()
        self._thread = threading.Thread(target=self._break)
        self._thread.start()

    def _break(self) -> None:
        with psycopg.connect(self._conninfo, autocommit=True) as connection:
            pids: list[int] = []
            for _ in range(TIMES):
                pids = [row[0] for row in connection.execute(_BREAK).fetchall()]
                threading.Event().wait(PAUSE_SECONDS)
            # Later requests must not use a connection that dies only then.
            wait_for(
                "the last ones to be gone",
                lambda: not connection.execute(_STILL_THERE, [pids]).fetchall(),
            )

    def is_over(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive()


def test_questions_that_wait_do_not_cost_a_server_its_lease(mortal: Server) -> None:
    run_id = mortal.accepted("waiter", session="agent:main:patient")
    mortal.note(f"{run_id}.began")
    conninfo = Home.at(mortal.data_dir / "postgres").conninfo()
    asking = [threading.Thread(target=mortal.run, args=(run_id,)) for _ in range(QUESTIONS)]
    with psycopg.connect(conninfo) as connection:
        connection.execute("LOCK TABLE runs IN ACCESS EXCLUSIVE MODE")
        for thread in asking:
            thread.start()
        threading.Event().wait(QUICK_LEASE_SECONDS * 1.5)
        connection.rollback()
    for thread in asking:
        thread.join(30)
        assert not thread.is_alive()
    mortal.let_go(run_id)
    run = mortal.run(run_id, "announced")
    assert (run["outcome"], run["error"]) == ("success", None)


def test_runs_go_on_while_connections_break(server: Server) -> None:
    keys = [f"agent:main:broken-{number}" for number in range(REQUESTERS)]
    runs = [
        server.accepted("echo", session=key, cleanup="delete")
        for key in keys
        for _ in range(CHILDREN_MAX)
    ]
    Breaking(server).is_over()
    for run_id in runs:
        run = server.run(run_id, "archived")
        assert (run["outcome"], run["error"]) == ("success", None)
    for key in keys:
        assert len(server.inbox(key)) == CHILDREN_MAX

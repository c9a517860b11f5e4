"""Connections to the database that break under the server: no run and no spawn pays for it."""

import threading

import psycopg
import pytest

from infrastructure.outbound.embedded_postgres.layout import Home
from tests.support.spawning_server import CHILDREN_MAX, Stories

pytestmark = pytest.mark.slow

REQUESTERS = 2
BREAK_SECONDS = 1.0
PAUSE_SECONDS = 0.02

_BREAK = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE application_name LIKE 'spawnlog%' AND pid <> pg_backend_pid()"
)


class Breaking:
    """Ends every connection of the server, again and again, for a while."""

    def __init__(self, server: Stories) -> None:
        self._conninfo = Home.at(server.data_dir / "postgres").conninfo()
        self._thread = threading.Thread(target=self._break)
        self._thread.start()

    def _break(self) -> None:
        with psycopg.connect(self._conninfo, autocommit=True) as connection:
            for _ in range(int(BREAK_SECONDS / PAUSE_SECONDS)):
                connection.execute(_BREAK)
                threading.Event().wait(PAUSE_SECONDS)

    def is_over(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive()


def test_runs_go_on_while_connections_break(server: Stories) -> None:
    keys = [f"agent:main:broken-{number}" for number in range(REQUESTERS)]
    runs = [
        server.accepted("echo", requester={"sessionKey": key}, cleanup="delete")
        for key in keys
        for _ in range(CHILDREN_MAX)
    ]
    Breaking(server).is_over()
    for run_id in runs:
        run = server.run(run_id, "archived")
        assert (run["outcome"], run["error"]) == ("success", None)
    for key in keys:
        assert len(server.inbox(key)) == CHILDREN_MAX

"""An executor outside: claims runs of a server over HTTP, and reports them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import psycopg

from tests.support.servers.databases import Databases
from tests.support.servers.mortal_server import QUICK_LEASE_SECONDS, Mortal, mortal_on
from tests.support.servers.running_server import configuration, scripted

PLACES = 2
"""How many runs may be executed outside at a time, at each depth."""


def outside_agents(folder: Path) -> dict[str, Any]:
    """Agents of each kind that matters here; nothing has to be made for them in `folder`."""
    config = configuration(
        {**scripted("main"), "default": True},
        {"id": "outside", "runtime": {"type": "external"}},
        maxConcurrent=PLACES,
        maxSpawnDepth=2,
        maxChildrenPerAgent=20,
        archiveAfterMinutes=60,
    )
    config["spawnlog"] = {"leaseSeconds": QUICK_LEASE_SECONDS, "drainSeconds": 1}
    (folder / "work").mkdir(parents=True, exist_ok=True)
    for agent in config["agents"]["list"]:
        agent["workspace"] = str(folder / "work")
    return config


class Executed(Mortal):
    """A server whose agent `outside` is executed by whoever claims its runs."""

    def __init__(self, data_dir: Path, folder: Path, database_url: str = "") -> None:
        super().__init__(data_dir, folder, database_url, config=outside_agents(folder))

    def offered(self, task: str = "hello", **body: Any) -> str:
        """Spawn; gives the id of the run, which waits for an executor."""
        run_id = self.accepted("outside", task, **body)
        assert self.run(run_id)["stage"] == "queued"
        return run_id

    def report(self, run_id: str, what: str, token: str = "", **body: Any) -> httpx2.Response:
        """Ask for a claim, or report, with the administrator's token unless there is another."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self.http.post(f"/v1/runs/{run_id}/{what}", json=body, headers=headers)

    def claimed(self, run_id: str, executor: str = "mine", **body: Any) -> dict[str, Any]:
        """Claim; gives what the executor is told."""
        answer = self.report(run_id, "claim", executor=executor, **body)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def forget_the_dead(self, living: str = "") -> None:
        """Let the leases of servers run out, but not those of executors."""
        self._let_run_out(b"holder NOT LIKE 'external:%%' AND url IS DISTINCT FROM %s", living)

    def forget_executors(self) -> None:
        """Let the leases of executors run out now, as if they had given no sign of life."""
        self._let_run_out(b"holder LIKE 'external:%%' AND url IS DISTINCT FROM %s", "")

    def empty_leases_of_executors(self) -> None:
        """As if the table had been emptied, which nobody but them knows to fill again."""
        self._change(b"DELETE FROM holders WHERE holder LIKE 'external:%%' AND holder <> %s", "")

    def leases_of_executors(self) -> list[tuple[float]]:
        """The seconds that are left of each."""
        query = (
            "SELECT extract(epoch FROM until - clock_timestamp())::float8 FROM holders"
            " WHERE holder LIKE 'external:%'"
        )
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            return connection.execute(query).fetchall()

    def _let_run_out(self, which: bytes, living: str) -> None:
        self._change(b"UPDATE holders SET until = clock_timestamp() WHERE " + which, living)

    def _change(self, statement: bytes, value: str) -> None:
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute(statement, [value])


@contextmanager
def executed_on(databases: Databases) -> Iterator[Executed]:
    """Such a server on a database of its own."""
    with mortal_on(databases, Executed) as server:
        yield server

"""Two servers on one data directory: one PostgreSQL, one log, each takes over from the other."""

import psycopg
import pytest

from infrastructure.outbound.embedded_postgres.layout import Home
from tests.support.embedded_servers import answers, keepers_of, server_is_gone
from tests.support.mortal_server import QUICK_LEASE_SECONDS, Mortal
from tests.support.process_table import is_alive
from tests.support.running_server import wait_for
from tests.support.spawning_server import WIDTH, Stories

pytestmark = pytest.mark.slow

KEY = "agent:main:orphans"


def test_a_server_takes_over_from_one_that_was_killed(mortal: Mortal) -> None:
    other = Stories(mortal.data_dir, mortal.folder, lease_seconds=QUICK_LEASE_SECONDS)
    other.log_path = mortal.log_path.with_name("other.log")
    postgres = mortal.data_dir / "postgres"
    body = {"requester": {"sessionKey": KEY}, "cleanup": "delete"}
    running = [mortal.accepted("waiter", **body) for _ in range(WIDTH)]
    pids = [int(mortal.note(f"{run_id}.began")) for run_id in running]
    queued = mortal.accepted("plain", **body)
    aside = mortal.spawned_aside(key="orphan", agentId="slow", **body)
    preparing = mortal.being_prepared(KEY)
    note = mortal.folder / f"slow.{preparing}"
    mortal.note(note.name)
    with other:
        assert len(keepers_of(postgres)) == 1
        assert other.http.get("/readyz").headers.get("Spawnlog-Log") == mortal.http.get(
            "/readyz"
        ).headers.get("Spawnlog-Log")
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

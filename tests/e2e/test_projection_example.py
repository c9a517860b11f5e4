"""`examples/projections/spawn_counts.py`, run as a user runs it."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from domain.run.events import SpawnRequested
from tests.support.builders.logged_family import LoggedFamily
from tests.support.servers.databases import Databases
from tests.support.servers.running_log import RunningLog, running_on
from tests.support.waiting import wait_for

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "examples" / "projections" / "spawn_counts.py"
PAGE = (ROOT / "docs" / "eventsourcing.md").read_text("utf-8")
END_SECONDS_MAX = 60
TRACKED = "SELECT max(notification_id) FROM my_views.spawn_counts_tracking"
COUNTED = "SELECT coalesce(sum(spawns), 0) FROM my_views.spawn_counts"


def started(log_url: str, own_url: str, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, PROGRAM, own_url, *arguments],
        env={**os.environ, "SPAWNLOG_DATABASE_URL": log_url},
        stdout=subprocess.PIPE,
        text=True,
    )


async def printed(log_url: str, own_url: str) -> str:
    def run() -> str:
        with started(log_url, own_url) as process:
            output, _ = process.communicate(timeout=END_SECONDS_MAX)
        assert process.returncode == 0
        return output

    return await asyncio.to_thread(run)


async def expected(running: RunningLog) -> str:
    events = [recorded.event for recorded in await running.events()]
    agents = [event.requested_agent_id for event in events if isinstance(event, SpawnRequested)]
    counts = {str(agent): agents.count(agent) for agent in sorted(set(agents), key=str)}
    rows = {**counts, "position": len(events)}
    return "".join(f"{name:12} {count:6}\n" for name, count in rows.items())


async def test_counts_are_those_of_log_however_often_it_runs(
    running: RunningLog, databases: Databases
) -> None:
    own = databases.create_empty()
    family = LoggedFamily(running.log, allow_agents=("*",))
    for name, agent in (("one", "counter"), ("two", "counter"), ("three", "main")):
        await family.spawn(name, target_agent_id=agent)
    for _ in range(2):
        output = await printed(running.url, own)
        assert output == await expected(running)
    assert output in PAGE
    await family.spawn("four")
    assert await printed(running.url, own) == await expected(running)
    databases.drop(own)


@pytest.mark.kill
async def test_killed_between_count_and_position_counts_once(
    database_url: str, databases: Databases
) -> None:
    own = databases.create_empty()
    async with running_on(database_url) as running:
        family = LoggedFamily(running.log)
        await family.spawn("one")
        await printed(running.url, own)
        await family.spawn("two")
        with psycopg.connect(own) as holder:
            (before,) = holder.execute(COUNTED).fetchone() or (None,)
            holder.execute("LOCK TABLE my_views.spawn_counts_tracking IN EXCLUSIVE MODE")
            with psycopg.connect(own, autocommit=True) as observer:
                with started(running.url, own, "--follow") as process:
                    try:
                        # The transaction that has counted waits to write its position.
                        await asyncio.to_thread(
                            wait_for, "the count", lambda: _is_counted(observer)
                        )
                    finally:
                        process.kill()
        with psycopg.connect(own) as observer:
            assert observer.execute(COUNTED).fetchone() == (before,) == (1,)
        assert await printed(running.url, own) == await expected(running)
    databases.drop(own)


def _is_counted(observer: "psycopg.Connection[tuple[object, ...]]") -> bool:
    query = (
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation ="
        " 'my_views.spawn_counts_tracking'::regclass AND EXISTS (SELECT FROM pg_locks AS held"
        " WHERE held.pid = pg_locks.pid AND held.relation = 'my_views.spawn_counts'::regclass)"
    )
    return observer.execute(query).fetchone() == (1,)

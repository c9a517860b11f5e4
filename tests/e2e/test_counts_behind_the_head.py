"""Servers count recorded events in the background, and agree."""

from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.servers.configurations import agent, configuration
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.server, pytest.mark.kill]
BLOCK_EVENTS = 64


def _asked(database_url: str, query: str) -> list[Any]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        return connection.execute(query).fetchall()


def _head(database_url: str) -> int:
    return int(_asked(database_url, "SELECT position FROM log_head")[0][0])


def _counted(database_url: str) -> list[int]:
    return [
        row[0] for row in _asked(database_url, "SELECT last_position FROM event_counts ORDER BY 1")
    ]


def _live_until(server: Server, database_url: str, events: int) -> None:
    while _head(database_url) < events:
        server.run(server.spawn("hello").json()["runId"], "announced")


def test_what_a_killed_server_did_not_count_another_one_does(
    tmp_path: Path, database_url: str
) -> None:
    tmp_path.chmod(0o755)
    server = Server(tmp_path / "data", configuration(agent()), database_url=database_url)
    with server:
        _live_until(server, database_url, 2 * BLOCK_EVENTS + 1)
        wait_for("the first blocks", lambda: len(_counted(database_url)) >= 2)
        _live_until(server, database_url, 4 * BLOCK_EVENTS + 1)
        server.kill()
        server.start()
        wait_for("those of before", lambda: len(_counted(database_url)) >= 4)
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute("TRUNCATE event_counts, live_runs")
        _live_until(server, database_url, _head(database_url) + BLOCK_EVENTS)
        wait_for("all of them again", lambda: len(_counted(database_url)) >= 5)
        head = _head(database_url)
        found = server.http.get(
            "/v1/events/histogram", params={"to": f"pos:{head}", "buckets": 50}
        ).json()
    assert sum(item["events"] for item in found["items"]) == head
    positions = _counted(database_url)
    assert positions == [BLOCK_EVENTS * (n + 1) for n in range(len(positions))]
    for position, counts in _asked(database_url, "SELECT last_position, counts FROM event_counts"):
        whole = sum(count for name, count in counts.items() if "/" not in name)
        assert whole == position

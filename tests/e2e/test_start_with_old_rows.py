"""A server that finds rows of an older version makes them anew before it serves."""

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.kill

STOP_SECONDS_MAX = 10.0
OLD = "as it was called before"


@pytest.fixture
def database(mortal: Server) -> Iterator[psycopg.Connection[Any]]:
    """The database of a log with runs and with rows of an older version; no server is running."""
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


def test_two_servers_that_start_at_once_serve_new_rows(
    mortal: Server, database: psycopg.Connection[Any]
) -> None:
    other = mortal.twin("beginner", dies=False)
    said_before = len(mortal.log())
    starting = threading.Thread(target=mortal.start)
    starting.start()
    with other:
        starting.join(60)
        for server in (mortal, other):
            query = {"requester": "agent:main:old rows"}
            (run,) = server.http.get("/v1/runs", params=query).json()["items"]
            assert run.get("label") is None
            assert server.run(server.accepted("echo"), "announced")["outcome"] == "success"
    said = mortal.log()[said_before:] + other.log()
    assert "are of an older version: they are made anew" in said
    assert said.count("events rebuilt in") == 1


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


def test_a_server_whose_rows_another_release_has_made_says_so_and_ends(mortal: Server) -> None:
    said_before = len(mortal.log())
    postgres = EmbeddedPostgres.start(mortal.data_dir / "postgres")
    try:
        with psycopg.connect(postgres.conninfo, autocommit=True) as connection:
            connection.execute("UPDATE projections SET version = version + 1")
            answer = mortal.spawn(agentId="echo")
            assert answer.status_code == 503
            assert "the rows are of another version now" in answer.json()["detail"]
            assert mortal.process is not None
            assert mortal.process.wait(STOP_SECONDS_MAX * 3) == 0
            assert mortal.stop() == 0
            connection.execute("UPDATE projections SET version = version - 1")
    finally:
        postgres.close()
    assert "this server stops: the rows are of another version now" in mortal.log()[said_before:]

"""A server asks the database nothing about a life that it has recorded itself a moment ago."""

import re
from collections import Counter
from contextlib import closing

import psycopg
import pytest

from infrastructure.outbound.embedded_postgres.data_directory import Home
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from infrastructure.server.database import migrate_database
from tests.support.servers.configurations import agent, configuration
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server
LIVES = 8
STATEMENT = re.compile(r"(?:statement|execute [^:]*): (.*)")
READS = {
    "sessions": "SELECT t.key, one.* FROM unnest",
    "end of the log": "SELECT position, recorded_at FROM log_head",
    "waiting lanes": "WITH RECURSIVE places",
    "keys": "SELECT session_id, key FROM content_keys",
    "texts": "SELECT content_id, body FROM contents",
}


def test_life_asks_for_nothing_that_is_known(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("statements")
    folder.chmod(0o755)
    home = folder / "postgres"
    with closing(EmbeddedPostgres.start(home)) as database:
        migrate_database(database.conninfo, home)
        with psycopg.connect(database.conninfo, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET log_statement = 'all'")
            connection.execute("SELECT pg_reload_conf()")
        config, log = configuration(agent()), Home.at(home).log
        with Server(folder / "data", config, database_url=database.conninfo) as server:
            wait_for("statements in the log", lambda: bool(STATEMENT.search(log.read_text())))
            _live(server)
            before = len(log.read_text("utf-8", "replace"))
            for _ in range(LIVES):
                _live(server)
        counted = _reads(log.read_text("utf-8", "replace")[before:])
    # The end of the log is asked for once if the run has ended before somebody waits for that.
    assert counted["end of the log"] <= LIVES + 2
    # Some are repeated each second.
    seldom = ("sessions", "waiting lanes", "keys", "texts")
    assert all(counted[name] < LIVES for name in seldom), counted


def _live(server: Server) -> None:
    accepted = server.spawn(cleanup="delete").json()
    path = f"/v1/runs/{accepted['runId']}?wait=20s&until=archived"
    assert server.http.get(path).json()["stage"] == "archived"


def _reads(log: str) -> Counter[str]:
    texts = [found[1] for found in map(STATEMENT.search, log.splitlines()) if found is not None]
    return Counter(name for text in texts for name, part in READS.items() if text.startswith(part))

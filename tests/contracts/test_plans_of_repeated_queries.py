"""Every query that a server repeats by itself, whether anything happens or not, those of a scrape
of its metrics, and those about the log in time, whose pages are small however long it is.

None may read what is over: beside a record of a million events an idle server costs as little as
beside an empty one.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
import pytest

from application.ports.event_counts import BLOCK_EVENTS
from application.ports.open_work import COUNTED_MAX
from application.ports.registry import RunQuery
from application.projections.fold import FOREVER
from application.queries.events import POSITIONS_PASSED_MAX
from domain.run.facts import EXTERNAL_LANE
from domain.run.lifecycle import PREPARING
from infrastructure.outbound.embedded_postgres.data_directory import Home
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from infrastructure.outbound.log.read.events import EVENTS_BEHIND, QUEUED_MESSAGE, events_between
from infrastructure.outbound.log.read.fold_input import query_of_sessions
from infrastructure.outbound.log.read.moments import moment_at_end
from infrastructure.outbound.log.read.tail import HEAD_AND_HASH
from infrastructure.outbound.log.schema.connections import PLANNING
from infrastructure.outbound.read_model.coordination import (
    CLAIM_DUE,
    CLAIM_EFFECTS,
    CLAIM_WAITS,
    DUE_FILES,
    FORGET_ANSWERS,
    HELD,
    LOST,
    PROLONG,
    RENEW,
    UNCLAIMED,
)
from infrastructure.outbound.read_model.event_counts import (
    BEGUN_AND_ENDED,
    BLOCKS,
    COUNTED,
    INSTANTS,
    LAST_COUNTED,
    LAST_NOTED,
    POSITIONS,
    RANGES,
)
from infrastructure.outbound.read_model.open_work import DUE, LANES, OTHERS
from infrastructure.outbound.read_model.registry import WAITING_LANES
from infrastructure.outbound.read_model.run_bars import (
    RUNS_OF_A_SESSION,
    STAGES,
    page_of_bars,
    spawned_bars,
)
from infrastructure.outbound.read_model.staged_files import DELETE_EXPIRED
from infrastructure.server.database import migrate_database
from tests.support.servers.configurations import agent, configuration
from tests.support.servers.server import QUICK_LEASE_SECONDS, Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server


class RepeatedQuery(NamedTuple):
    """A query as it is sent, and values such as a server sends with it."""

    sql: str
    values: Sequence[Any] | Mapping[str, Any]


LIVES, EVENTS_OF_A_LIFE, ROWS_OF_A_LIFE = 70_000, 15, 10
EVENTS = LIVES * EVENTS_OF_A_LIFE
LIVE = 40
PAGES_MAX = 200
"""So many pages may be touched for what is under way, which is little here."""


_CLAIM = {"holder": "somebody", "seconds": 30, "limit": 50}
_NO_CLAIMS = {"kinds": [], "run_ids": [], "holders": [], "seconds": 30}
REPEATED: Mapping[str, RepeatedQuery] = {
    "the lease is renewed": RepeatedQuery(
        RENEW, {"holder": "s", "url": None, "seconds": 30, "not_after": None, "revives": False}
    ),
    "lost runs": RepeatedQuery(LOST, [200]),
    "runs held under one's own name": RepeatedQuery(HELD, ["somebody", 200]),
    "lanes in which a run waits": RepeatedQuery(WAITING_LANES, [8, 8]),
    "runs that nobody outside has claimed": RepeatedQuery(
        UNCLAIMED, {"lane": EXTERNAL_LANE, "seconds": 3600, "limit": 200}
    ),
    "announcements that are due": RepeatedQuery(CLAIM_DUE, {**_CLAIM, "kind": "announce"}),
    "archives that are due": RepeatedQuery(CLAIM_DUE, {**_CLAIM, "kind": "archive"}),
    "what is to be undone or told": RepeatedQuery(CLAIM_EFFECTS, {**_CLAIM, "kind": "effects"}),
    "runs whose wait is over": RepeatedQuery(CLAIM_WAITS, {**_CLAIM, "kind": "wait"}),
    "claims of work under way": RepeatedQuery(PROLONG, _NO_CLAIMS),
    "files that nobody writes any more": RepeatedQuery(DELETE_EXPIRED, [sorted(PREPARING), 100]),
    "transcripts that nobody wrote as files": RepeatedQuery(DUE_FILES, [50]),
    "answers that are old": RepeatedQuery(FORGET_ANSWERS, [7]),
    "events behind the tail": RepeatedQuery(EVENTS_BEHIND, [EVENTS, 500]),
    "whether the log went back": RepeatedQuery(HEAD_AND_HASH, [EVENTS]),
    "up to where events are counted": RepeatedQuery(LAST_COUNTED, []),
    "events that are to be counted": RepeatedQuery(
        BLOCKS, [BLOCK_EVENTS, EVENTS - BLOCK_EVENTS, EVENTS]
    ),
}
SCRAPED: Mapping[str, RepeatedQuery] = {
    "how many are in lanes": RepeatedQuery(LANES, []),
    "how much is due": RepeatedQuery(DUE, []),
    "how much else is open": RepeatedQuery(OTHERS, [COUNTED_MAX]),
}
_NOW, _THEN = moment_at_end(EVENTS), moment_at_end(EVENTS // 2)
_RUNS_NAMED = [UUID(hashlib.md5(b"%d" % life).hexdigest()) for life in range(LIVE, LIVE + 5)]
ASKED_IN_TIME: Mapping[str, RepeatedQuery] = {
    **{
        f"bars of a page, of {moment.position}": RepeatedQuery(
            *page_of_bars(
                RunQuery(),
                moment,
                {"created_position > %s": 0, "created_position <= %s": moment.position},
                5,
            )
        )
        for moment in (_NOW, _THEN)
    },
    "bars by their ids": RepeatedQuery(
        *page_of_bars(
            RunQuery(),
            _THEN,
            {"created_position <= %s": EVENTS // 2, "run_id = ANY(%s::uuid[])": _RUNS_NAMED},
            5,
            by_id=True,
        )
    ),
    "bars below a session": RepeatedQuery(*spawned_bars(["agent:main:main"], _NOW, 5)),
    "refused below a session": RepeatedQuery(
        *spawned_bars(["agent:main:main"], _NOW, 5, refused=True)
    ),
    "a message that waits": RepeatedQuery(QUEUED_MESSAGE, ["00000000-0000-4000-8000-000000000001"]),
    "own runs of a session": RepeatedQuery(RUNS_OF_A_SESSION, ["agent:main:main", EVENTS, 5]),
    "stages": RepeatedQuery(
        STAGES, [_RUNS_NAMED, [f"run:{one}" for one in range(5)], [9] * 5, ["RunQueued"]]
    ),
    "sessions": RepeatedQuery(*query_of_sessions([("agent:main:main", [EVENTS // 2])])),
    "rows of counts": RepeatedQuery(COUNTED, [[EVENTS // 3, EVENTS // 2, EVENTS]]),
    "events between rows of counts": RepeatedQuery(RANGES, [[EVENTS - 63], [EVENTS]]),
    "instants of positions": RepeatedQuery(INSTANTS, [[1, EVENTS // 2, EVENTS]]),
    "positions of instants": RepeatedQuery(POSITIONS, [[datetime(2026, 3, 1, tzinfo=UTC)] * 3]),
    "runs that were at work": RepeatedQuery(LAST_NOTED, [EVENTS // 2]),
    "what has become of them": RepeatedQuery(BEGUN_AND_ENDED, [EVENTS - 500, EVENTS]),
    "the newest events": RepeatedQuery(
        *events_between(after=0, until=EVENTS, limit=500, newest_first=True)
    ),
    "the events before a position": RepeatedQuery(
        *events_between(after=0, until=EVENTS // 2, limit=500, newest_first=True)
    ),
    "the newest events of a run": RepeatedQuery(
        *events_between(after=0, until=EVENTS, limit=500, run_id=_RUNS_NAMED[0], newest_first=True)
    ),
    "the newest events of a tree": RepeatedQuery(
        *events_between(
            after=EVENTS - POSITIONS_PASSED_MAX,
            until=EVENTS,
            limit=500,
            correlations=["agent:main:main"],
            newest_first=True,
        )
    ),
}

# A life has ten rows, of which all but the last were in somebody's hands. Half of the runs that are
# over are to be archived some day.
_RUNS = (
    "INSERT INTO runs (run_id, version, created_position, created_at, from_position, to_position,"
    " stage, session_id, requester, root, lane, lane_depth, queued_position, holder, epoch,"
    " due_kind, due_at, state)"
    f" SELECT md5(life::text)::uuid, part, life * {EVENTS_OF_A_LIFE}, now() - interval '1 day',"
    f" life * {EVENTS_OF_A_LIFE} + part, CASE WHEN part = {ROWS_OF_A_LIFE} THEN {FOREVER}"
    f" ELSE life * {EVENTS_OF_A_LIFE} + part + 1 END,"
    " CASE WHEN kind IS NULL OR kind = 'archive' THEN 'announced' ELSE 'started' END,"
    " md5(life::text)::uuid, 'agent:main:main', 'agent:main:main',"
    " CASE WHEN kind = 'run' THEN 'subagent' END, 1, life,"
    " CASE WHEN kind = 'run' THEN 'somebody' END, 1, kind,"
    " now() + CASE WHEN is_live THEN interval '0' ELSE interval '1 day' END, '{\"waitsFor\": []}'"
    " FROM generate_series(%(first)s::int, %(last)s::int) AS life,"
    f" generate_series(1, {ROWS_OF_A_LIFE}) AS part,"
    f" LATERAL (SELECT life <= {LIVE} AS is_live) AS live, LATERAL (SELECT CASE"
    f" WHEN part < {ROWS_OF_A_LIFE} THEN 'run' WHEN is_live THEN"
    " (ARRAY['prepare', 'run', 'announce', 'archive', 'wait'])[life %% 5 + 1]"
    " WHEN life %% 2 = 0 THEN 'archive' END AS kind) AS due"
)
_EVENTS = (
    "INSERT INTO events (position, stream, version, type, type_version, recorded_at, occurred_at,"
    " event_id, command_id, actor_kind, config_revision, append_last, writer_version, chain_hash,"
    " state)"
    " SELECT position, 'run:' || position, 1, 'RunQueued', 1, now(), now(),"
    " md5(position::text)::uuid, md5(position::text)::uuid, 'system', 0, position, '0', '\\x00',"
    f" '{{}}' FROM generate_series((%(first)s - 1) * {EVENTS_OF_A_LIFE} + 1,"
    f" %(last)s * {EVENTS_OF_A_LIFE}) AS position"
)
_ANSWERS = (
    "INSERT INTO idempotency (token, method, path, key, fingerprint, kind, body, created_at)"
    " SELECT 'admin', 'POST', '/v1/spawns', life, '\\x00', 'accepted', '{}', now()"
    " FROM generate_series(%(first)s::int, %(last)s::int) AS life"
)
_COUNTS = (
    "INSERT INTO event_counts (last_position, counts) SELECT position, '{}' FROM generate_series("
    f"%(first)s * {EVENTS_OF_A_LIFE} / 64 * 64 + 64, %(last)s * {EVENTS_OF_A_LIFE}, 64) AS position"
    " ON CONFLICT DO NOTHING"
)
_TABLES = ["runs", "events", "idempotency", "event_counts"]


def _fill(connection: psycopg.Connection[Any], first: int, last: int) -> None:
    for statement in (_RUNS, _EVENTS, _ANSWERS, _COUNTS):
        connection.execute(statement, {"first": first, "last": last})


def _fill_with_the_past(connection: psycopg.Connection[Any]) -> None:
    """A million events of lives that are over."""
    indexes = connection.execute(
        "SELECT indexdef, indexname FROM pg_indexes WHERE tablename = ANY(%s)"
        " AND indexname NOT IN (SELECT conname FROM pg_constraint)",
        [_TABLES],
    ).fetchall()
    # To make them afterwards takes a fraction of the time.
    for _, name in indexes:
        connection.execute(f"DROP INDEX {name}")
    _fill(connection, LIVE + 1, LIVES)
    for definition, _ in indexes:
        connection.execute(definition)


def _leave_as_it_is(_: psycopg.Connection[Any]) -> None:
    """They are of when all there was was under way and due."""


def _analyse(connection: psycopg.Connection[Any]) -> None:
    connection.execute("ANALYZE")


def _forget(connection: psycopg.Connection[Any]) -> None:
    connection.execute("DELETE FROM pg_statistic WHERE starelid = ANY(%s::regclass[])", [_TABLES])
    connection.execute("UPDATE pg_class SET reltuples = -1 WHERE relname = ANY(%s)", [_TABLES])


STATISTICS: Mapping[str, Callable[[psycopg.Connection[Any]], None]] = {
    "stale": _leave_as_it_is,
    "fresh": _analyse,
    "missing": _forget,
}


@pytest.mark.nightly
def test_nothing_that_a_server_repeats_reads_what_is_over(database_url: str) -> None:
    walks: dict[str, str] = {}
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(PLANNING)
        for table in _TABLES:
            connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        connection.execute("INSERT INTO holders VALUES ('somebody', NULL, now() + interval '1 h')")
        _fill(connection, 1, LIVE)
        connection.execute("ANALYZE")
        _fill_with_the_past(connection)
        for state, change in STATISTICS.items():
            change(connection)
            for name, query in (*REPEATED.items(), *SCRAPED.items(), *ASKED_IN_TIME.items()):
                plan = _plan_of(connection, query)
                if _pages_touched(plan) > PAGES_MAX:
                    walks[f"{name}, statistics {state}"] = plan
    assert walks == {}, "\n\n".join(f"{name}\n{plan}" for name, plan in walks.items())


def _plan_of(connection: psycopg.Connection[Any], query: RepeatedQuery) -> str:
    with connection.transaction(force_rollback=True):
        cursor = connection.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, SUMMARY OFF) {query.sql}", query.values
        )
        return "\n".join(row[0] for row in cursor.fetchall())


def _pages_touched(plan: str) -> int:
    whole = re.search(r"Buffers: shared (.*)", plan)
    return sum(int(pages) for pages in re.findall(r"(?:hit|read)=(\d+)", whole[1])) if whole else 0


STATEMENT = re.compile(r"(?:statement|execute [^:]*): (.*)")
PLUMBING = re.compile("BEGIN|COMMIT|ROLLBACK|SET |LISTEN |SELECT pg_|DEALLOCATE|ALTER SYSTEM")
NOT_EACH_SECOND = 5
"""The sweep of files comes every minute, the old answers every hour, claims only with work, and
events are counted when there are new ones."""


def test_an_idle_server_asks_nothing_that_is_not_looked_at_here(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("idle")
    folder.chmod(0o755)
    home = folder / "postgres"
    with closing(EmbeddedPostgres.start(home)) as database:
        migrate_database(database.conninfo, home)
        config = configuration(agent())
        config["spawnlog"]["leaseSeconds"] = QUICK_LEASE_SECONDS
        server = Server(folder / "data", config, database_url=database.conninfo)
        server.start()
        try:
            with psycopg.connect(database.conninfo, autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET log_statement = 'all'")
                connection.execute("SELECT pg_reload_conf()")
            log = Home.at(home).log
            known = {_bare(one.sql) for one in REPEATED.values()}
            each_second = len(known) - NOT_EACH_SECOND
            wait_for(
                "every query of each second", lambda: len(_statements(log) & known) >= each_second
            )
            assert _statements(log) - known == set()
        finally:
            server.stop()


def _statements(log: Path) -> set[str]:
    matches = (STATEMENT.search(line) for line in log.read_text("utf-8", "replace").splitlines())
    texts = {_bare(one[1]) for one in matches if one is not None}
    return {text for text in texts if not PLUMBING.match(text)}


def _bare(sql: str) -> str:
    """A query without its values."""
    return re.sub(r"%\(\w+\)s|%[sb]|\$\d+", "?", sql).replace("%%", "%").strip()

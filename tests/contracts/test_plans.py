"""Every repeated query of a server, of its metrics, and about the log in time uses an index.

Beside a log of a million events it reads as few pages as beside an empty one, at any position, and
whatever the planner knew at its first use.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
import pytest

from application.ports.event_counts import BLOCK_EVENTS
from application.ports.open_work import COUNTED_MAX
from application.ports.registry import InboxQuery, RunQuery, StatusRows
from application.projections.fold import FOREVER
from application.projections.run_rows import COLUMNS_BY_CREATION, RUNS
from application.projections.session_rows import SESSIONS
from application.queries.events import POSITIONS_PASSED_MAX
from domain.run.facts import EXTERNAL_LANE
from domain.run.lifecycle import PREPARING
from infrastructure.outbound.embedded_postgres.data_directory import Home
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from infrastructure.outbound.log.append.load import (
    LANE_NEXT,
    LAST_ENTRIES,
    LOCK_TRANSCRIPTS,
    ROWS_MAX,
    STATES,
    WAITING,
)
from infrastructure.outbound.log.append.store import ANSWER_IDEMPOTENCY, close_rows
from infrastructure.outbound.log.read.events import (
    EVENTS_BEHIND,
    EVENTS_OF_STREAMS,
    QUEUED_MESSAGE,
    VERSIONS_AT,
    events_between,
)
from infrastructure.outbound.log.read.fold_input import query_of_sessions
from infrastructure.outbound.log.read.moments import INSIDE, Moment, moment_at_end
from infrastructure.outbound.log.read.tail import HEAD_AND_HASH
from infrastructure.outbound.log.schema.connections import PLANNING, WRITER_PLANNING, LogConnection
from infrastructure.outbound.read_model.coordination import (
    CLAIM_DUE,
    CLAIM_EFFECTS,
    CLAIM_WAITS,
    DUE_FILES,
    FORGET_ANSWERS,
    FORGET_HOLDER,
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
from infrastructure.outbound.read_model.registry import (
    CHANGED_STREAMS,
    CHANGED_STREAMS_OF_A_TREE,
    LANES_AS_OF,
    RESPAWNS,
    RUNS_BY_ID,
    WAITING_LANES,
    descendants_sql,
    descendants_values,
    page_of_inbox,
    page_of_runs,
)
from infrastructure.outbound.read_model.run_bars import (
    RUNS_OF_A_SESSION,
    STAGES,
    page_of_bars,
    spawned_bars,
)
from infrastructure.outbound.read_model.staged_files import DELETE_EXPIRED
from infrastructure.outbound.read_model.states import OPEN_RUNS, OPEN_SESSIONS, RUNS_AS_OF
from infrastructure.outbound.transcripts.rows import WRITTEN_BEHIND
from infrastructure.server.database import migrate_database
from tests.support.builders.family_log import FamilyLog
from tests.support.servers.configurations import agent, configuration
from tests.support.servers.server import QUICK_LEASE_SECONDS, Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server


class PlannedQuery(NamedTuple):
    """A query as it is sent, and values such as a server sends with it."""

    sql: str
    values: Sequence[Any] | Mapping[str, Any]


# Beside a million events.

LIVES, EVENTS_OF_A_LIFE, ROWS_OF_A_LIFE = 70_000, 15, 10
EVENTS = LIVES * EVENTS_OF_A_LIFE
LIVE = 40
PAGES_MAX = 200
"""Maximum number of pages for open work, which is little here."""


_CLAIM = {"holder": "somebody", "seconds": 30, "limit": 50}
_NO_CLAIMS = {"kinds": [], "run_ids": [], "holders": [], "seconds": 30}
REPEATED: Mapping[str, PlannedQuery] = {
    "the lease is renewed": PlannedQuery(
        RENEW, {"holder": "s", "url": None, "seconds": 30, "not_after": None, "revives": False}
    ),
    "lost runs": PlannedQuery(LOST, [200]),
    "runs held under one's own name": PlannedQuery(HELD, ["somebody", 200]),
    "lanes in which a run waits": PlannedQuery(WAITING_LANES, [8, 8]),
    "runs that nobody outside has claimed": PlannedQuery(
        UNCLAIMED, {"lane": EXTERNAL_LANE, "seconds": 3600, "limit": 200}
    ),
    "announcements that are due": PlannedQuery(CLAIM_DUE, {**_CLAIM, "kind": "announce"}),
    "archives that are due": PlannedQuery(CLAIM_DUE, {**_CLAIM, "kind": "archive"}),
    "what is to be undone or told": PlannedQuery(CLAIM_EFFECTS, {**_CLAIM, "kind": "effects"}),
    "runs whose wait is over": PlannedQuery(CLAIM_WAITS, {**_CLAIM, "kind": "wait"}),
    "claims of work under way": PlannedQuery(PROLONG, _NO_CLAIMS),
    "files that nobody writes any more": PlannedQuery(DELETE_EXPIRED, [sorted(PREPARING), 100]),
    "transcripts that nobody wrote as files": PlannedQuery(DUE_FILES, [50]),
    "answers that are old": PlannedQuery(FORGET_ANSWERS, [7]),
    "events behind the tail": PlannedQuery(EVENTS_BEHIND, [EVENTS, 500]),
    "whether the log went back": PlannedQuery(HEAD_AND_HASH, [EVENTS]),
    "up to where events are counted": PlannedQuery(LAST_COUNTED, []),
    "events that are to be counted": PlannedQuery(
        BLOCKS, [BLOCK_EVENTS, EVENTS - BLOCK_EVENTS, EVENTS]
    ),
}
SCRAPED: Mapping[str, PlannedQuery] = {
    "how many are in lanes": PlannedQuery(LANES, []),
    "how much is due": PlannedQuery(DUE, []),
    "how much else is open": PlannedQuery(OTHERS, [COUNTED_MAX]),
}
_NOW, _THEN = moment_at_end(EVENTS), moment_at_end(EVENTS // 2)
_RUNS_NAMED = [UUID(hashlib.md5(b"%d" % life).hexdigest()) for life in range(LIVE, LIVE + 5)]
ASKED_IN_TIME: Mapping[str, PlannedQuery] = {
    **{
        f"bars of a page, of {moment.position}": PlannedQuery(
            *page_of_bars(
                RunQuery(),
                moment,
                {"created_position > %s": 0, "created_position <= %s": moment.position},
                5,
            )
        )
        for moment in (_NOW, _THEN)
    },
    "bars by their ids": PlannedQuery(
        *page_of_bars(
            RunQuery(),
            _THEN,
            {"created_position <= %s": EVENTS // 2, "run_id = ANY(%s::uuid[])": _RUNS_NAMED},
            5,
            by_id=True,
        )
    ),
    "bars below a session": PlannedQuery(*spawned_bars(["agent:main:main"], _NOW, 5)),
    "refused below a session": PlannedQuery(
        *spawned_bars(["agent:main:main"], _NOW, 5, refused=True)
    ),
    "a message that waits": PlannedQuery(QUEUED_MESSAGE, ["00000000-0000-4000-8000-000000000001"]),
    "own runs of a session": PlannedQuery(RUNS_OF_A_SESSION, ["agent:main:main", EVENTS, 5]),
    "stages": PlannedQuery(
        STAGES, [_RUNS_NAMED, [f"run:{number}" for number in range(5)], [9] * 5, ["RunQueued"]]
    ),
    "sessions": PlannedQuery(*query_of_sessions([("agent:main:main", [EVENTS // 2])])),
    "rows of counts": PlannedQuery(COUNTED, [[EVENTS // 3, EVENTS // 2, EVENTS]]),
    "events between rows of counts": PlannedQuery(RANGES, [[EVENTS - 63], [EVENTS]]),
    "instants of positions": PlannedQuery(INSTANTS, [[1, EVENTS // 2, EVENTS]]),
    "positions of instants": PlannedQuery(POSITIONS, [[datetime(2026, 3, 1, tzinfo=UTC)] * 3]),
    "runs that were at work": PlannedQuery(LAST_NOTED, [EVENTS // 2]),
    "what has become of them": PlannedQuery(BEGUN_AND_ENDED, [EVENTS - 500, EVENTS]),
    "the newest events": PlannedQuery(
        *events_between(after=0, until=EVENTS, limit=500, newest_first=True)
    ),
    "the events before a position": PlannedQuery(
        *events_between(after=0, until=EVENTS // 2, limit=500, newest_first=True)
    ),
    "the newest events of a run": PlannedQuery(
        *events_between(after=0, until=EVENTS, limit=500, run_id=_RUNS_NAMED[0], newest_first=True)
    ),
    "the newest events of a tree": PlannedQuery(
        *events_between(
            after=EVENTS - POSITIONS_PASSED_MAX,
            until=EVENTS,
            limit=500,
            correlations=["agent:main:main"],
            newest_first=True,
        )
    ),
}

# A life has ten rows; all but the last have a holder. Half of the ended runs are to be archived.
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


def _fill(connection: psycopg.Connection[Any], first: int, last: int, *rows: str) -> None:
    for statement in rows or (_RUNS, _EVENTS, _ANSWERS, _COUNTS):
        connection.execute(statement, {"first": first, "last": last})


def _fill_with_the_past(connection: psycopg.Connection[Any]) -> None:
    indexes = connection.execute(
        "SELECT indexdef, indexname FROM pg_indexes WHERE tablename = ANY(%s)"
        " AND indexname NOT IN (SELECT conname FROM pg_constraint)",
        [_TABLES],
    ).fetchall()
    # Creating indexes after the inserts is much faster.
    for _, name in indexes:
        connection.execute(f"DROP INDEX {name}")
    _fill(connection, LIVE + 1, LIVES)
    for definition, _ in indexes:
        connection.execute(definition)


def _leave_as_it_is(_: psycopg.Connection[Any]) -> None:
    """Do nothing: the statistics are those of a small log."""


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


def walks(
    connection: psycopg.Connection[Any], queries: Mapping[str, PlannedQuery], pages_max: int
) -> str:
    """Return the plans that touch more pages, under any statistics."""
    found: list[str] = []
    for state, change in STATISTICS.items():
        change(connection)
        for name, query in queries.items():
            with connection.transaction(force_rollback=True):
                explained = connection.execute(
                    f"EXPLAIN (ANALYZE, BUFFERS, SUMMARY OFF) {query.sql}", query.values
                )
                plan = "\n".join(row[0] for row in explained.fetchall())
            whole = re.search(r"Buffers: shared (.*)", plan)
            pages = re.findall(r"(?:hit|read)=(\d+)", whole[1]) if whole else []
            if sum(map(int, pages)) > pages_max:
                found.append(f"{name}, statistics {state}\n{plan}")
    return "\n\n".join(found)


def _prepare(connection: psycopg.Connection[Any]) -> None:
    connection.execute(PLANNING)
    for table in _TABLES:
        connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")


@pytest.mark.nightly
def test_repeated_query_reads_nothing_that_is_over(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        _prepare(connection)
        connection.execute("INSERT INTO holders VALUES ('somebody', NULL, now() + interval '1 h')")
        _fill(connection, 1, LIVE)
        connection.execute("ANALYZE")
        _fill_with_the_past(connection)
        assert walks(connection, {**REPEATED, **SCRAPED, **ASKED_IN_TIME}, PAGES_MAX) == ""


STATEMENT = re.compile(r"(?:statement|execute [^:]*): (.*)")
PLUMBING = re.compile("BEGIN|COMMIT|ROLLBACK|SET |LISTEN |SELECT pg_|DEALLOCATE|ALTER SYSTEM")
NOT_EACH_SECOND = 5
"""Queries that run less often: files every minute, old answers every hour, claims only with work,
counts of events only with new ones.
"""


@contextmanager
def logging_server(folder: Path) -> Iterator[tuple[Server, Callable[[], list[str]]]]:
    """Yield a server whose database logs each statement, and a function that returns the new
    ones.
    """
    folder.chmod(0o755)
    home = folder / "postgres"
    with closing(EmbeddedPostgres.start(home)) as database:
        migrate_database(database.conninfo, home)
        config, log = configuration(agent()), Home.at(home).log
        config["spawnlog"]["leaseSeconds"] = QUICK_LEASE_SECONDS
        with Server(folder / "data", config, database_url=database.conninfo) as server:
            with psycopg.connect(database.conninfo, autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET log_statement = 'all'")
                connection.execute("SELECT pg_reload_conf()")

            def statements() -> list[str]:
                lines = log.read_text("utf-8", "replace").splitlines()
                return [found[1] for found in map(STATEMENT.search, lines) if found is not None]

            wait_for("statements in the log", lambda: bool(statements()))
            yield server, statements


def test_idle_server_asks_only_listed_queries(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    known = {_bare(item.sql) for item in REPEATED.values()}
    each_second = len(known) - NOT_EACH_SECOND
    with logging_server(tmp_path_factory.mktemp("idle")) as (_, statements):

        def asked() -> set[str]:
            return {text for text in map(_bare, statements()) if not PLUMBING.match(text)}

        wait_for("every query of each second", lambda: len(asked() & known) >= each_second)
        assert asked() - known == set()


LIVES_AT_ONCE = 8
READS = {
    "sessions": "SELECT t.key, one.* FROM unnest",
    "end of the log": "SELECT position, recorded_at FROM log_head",
    "waiting lanes": "WITH RECURSIVE places",
    "keys": "SELECT session_id, key FROM content_keys",
    "texts": "SELECT content_id, body FROM contents",
}


def test_life_asks_for_nothing_that_is_known(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A server does not query a life that it has just recorded itself."""

    def live(server: Server) -> None:
        accepted = server.spawn(cleanup="delete").json()
        path = f"/v1/runs/{accepted['runId']}?wait=20s&until=archived"
        assert server.http.get(path).json()["stage"] == "archived"

    with logging_server(tmp_path_factory.mktemp("life")) as (server, statements):
        live(server)
        before = len(statements())
        for _ in range(LIVES_AT_ONCE):
            live(server)
        found = statements()[before:]
    counted = {name: sum(text.startswith(part) for text in found) for name, part in READS.items()}
    # If the run has ended before the wait, the end of the log is read once.
    assert counted.pop("end of the log") <= LIVES_AT_ONCE + 2
    # Some queries are repeated each second.
    assert all(count < LIVES_AT_ONCE for count in counted.values()), counted


def _bare(sql: str) -> str:
    """Return a query without its values."""
    return re.sub(r"%\(\w+\)s|%[sb]|\$\d+", "?", sql).replace("%%", "%").strip()


# Queries as of a past position of a log with a million events.

SESSIONS_ASKING = 500
OVERLAP = 12
"""Number of concurrent lives; every hundredth lasts as long as a hundred others."""
LAST_LIFE = 40
REVISIONS = 20_000
PAGES_OF_THE_PAST_MAX = 260

# A run is queued, started, announced and archived; each of these rows ends some positions later.
_PAST_RUNS = (
    "INSERT INTO runs (run_id, version, created_position, created_at, from_position, to_position,"
    " stage, session_id, requester, root, lane, lane_depth, queued_position, holder, epoch,"
    " inbox_position, parked_position, state)"
    f" SELECT md5(life::text)::uuid, part, life * {EVENTS_OF_A_LIFE}, now(),"
    f" life * {EVENTS_OF_A_LIFE} + part * stretch,"
    f" CASE WHEN part = 5 OR (life > {LIVES - LAST_LIFE} AND part = 2) THEN {FOREVER}"
    f" ELSE life * {EVENTS_OF_A_LIFE} + (part + 1) * stretch END,"
    " (ARRAY['queued', 'started', 'announced', 'announced', 'archived'])[part],"
    f" md5(life::text)::uuid, 'agent:main:s' || life %% {SESSIONS_ASKING}, 'agent:main:main',"
    " CASE WHEN part < 3 THEN 'subagent' END, 1, life, CASE WHEN part = 2 THEN 'somebody' END, 1,"
    f" CASE WHEN part > 2 THEN life * {EVENTS_OF_A_LIFE} + 3 * stretch END,"
    f" CASE WHEN part > 3 AND life %% 50 = 0 THEN life * {EVENTS_OF_A_LIFE} + 4 * stretch END,"
    " CASE WHEN part = 5 THEN '{}' END"
    " FROM generate_series(%(first)s::int, %(last)s::int) AS life, generate_series(1, 5) AS part,"
    " LATERAL (SELECT CASE WHEN life %% 100 = 0 THEN 300 ELSE"
    f" {OVERLAP * EVENTS_OF_A_LIFE // 5} END AS stretch) AS pace"
    f" WHERE life <= {LIVES - LAST_LIFE} OR part < 3"
)
_REVISIONS = (
    "INSERT INTO events (position, stream, version, type, type_version, recorded_at, occurred_at,"
    " event_id, command_id, actor_kind, config_revision, append_last, writer_version, chain_hash,"
    " state)"
    f" SELECT position, 'log:config', position / {EVENTS // REVISIONS}, 'ConfigurationActivated',"
    " 1, now(), now(), md5(position::text)::uuid, md5(position::text)::uuid, 'system', 0, position,"
    f" '0', '\\x00', '{{}}' FROM generate_series(%(first)s::int, %(last)s::int) AS life,"
    f" LATERAL (SELECT life::bigint * {EVENTS_OF_A_LIFE} AS position) AS of_life"
    f" WHERE position %% {EVENTS // REVISIONS} < {EVENTS_OF_A_LIFE}"
    " ON CONFLICT DO NOTHING"
)


def _as_of(at: int) -> Mapping[str, PlannedQuery]:
    moment = moment_at_end(at)
    found = {
        "who was in a lane": PlannedQuery(LANES_AS_OF, {"at": at, "changed": []}),
        "the configuration in force": PlannedQuery(VERSIONS_AT, [["log:config"], [at]]),
        "a revision": PlannedQuery(EVENTS_OF_STREAMS, [["log:config"], [REVISIONS // 2]]),
        "runs by the beginning of an id": PlannedQuery(
            RUNS_BY_ID, ["12345678" + "0" * 24, "12345678" + "f" * 24, 200]
        ),
    }
    for name, query in (
        ("an inbox", InboxQuery("agent:main:s7")),
        ("the ledger", InboxQuery()),
        ("what is parked", InboxQuery(is_parked=True)),
    ):
        for place, after in (("from its beginning", 0), ("near its end", max(at - 2_000, 0))):
            found[f"{name}, {place}"] = PlannedQuery(*page_of_inbox(query, moment, after, 21))
    return found


@pytest.mark.nightly
def test_past_is_found_along_indexes(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        _prepare(connection)
        _fill(connection, 1, 100, _PAST_RUNS, _REVISIONS)
        connection.execute("ANALYZE")
        _fill(connection, 101, LIVES, _PAST_RUNS, _REVISIONS)
        connection.execute("UPDATE log_head SET position = %s", [EVENTS])
        queries = {
            f"{name}, as of {at}": query
            for at in (1_000, EVENTS // 2, EVENTS - 100, EVENTS)
            for name, query in _as_of(at).items()
        }
        assert walks(connection, queries, PAGES_OF_THE_PAST_MAX) == ""
        middle = {"at": EVENTS // 2, "changed": []}
        then = connection.execute(LANES_AS_OF, middle).fetchall()
        counted = connection.execute(
            "SELECT count(*) FROM runs WHERE lane IS NOT NULL AND from_position <= %(at)s"
            " AND to_position > %(at)s",
            middle,
        ).fetchone()
        assert counted == (len(then),)
        assert len(then) > OVERLAP / 3


# Beside some thousands of rows.


async def explained(connection: LogConnection, sql: str, values: Any = None) -> str:
    rows = await (await connection.execute(f"EXPLAIN (ANALYZE, BUFFERS) {sql}", values)).fetchall()
    return "\n".join(row[0] for row in rows)


def buffers_of(plan: str) -> int:
    return max(int(hit) for hit in re.findall(r"Buffers: shared hit=(\d+)", plan))


WAITING_RUNS, WAITS = 10_000, 1_000
TREE = "agent:main:r"
STATE_BYTES = 3_000

# The first ones wait, each for a run after all of them.
_WAITING_RUNS = (
    "INSERT INTO runs (run_id, version, created_position, created_at, from_position, to_position,"
    " stage, session_id, requester, root, epoch, due_kind, due_at, state)"
    " SELECT md5(n::text)::uuid, 1, n, now(), n, 4611686018427387904,"
    f" CASE WHEN n <= {WAITS} THEN 'session-created' ELSE 'started' END, md5(n::text)::uuid,"
    f" '{TREE}', '{TREE}', 1, CASE WHEN n <= {WAITS} THEN 'wait' ELSE 'run' END, now(),"
    f" json_build_object('waitsFor', json_build_array(md5((n + {WAITS})::text)::uuid),"
    f" 'more', repeat('x', {STATE_BYTES}))"
    f" FROM generate_series(1, {WAITING_RUNS}) AS n"
)
_DONE = "UPDATE runs SET stage = 'announced', due_kind = NULL WHERE run_id = md5(%s)::uuid"
_CLAIM_WAITS = {"holder": "server-1", "seconds": 60, "kind": "wait", "limit": 50}


@pytest.mark.parametrize("done", [0, 3])
async def test_claim_of_waiting_runs_goes_along_indexes(
    connection: LogConnection, done: int
) -> None:
    await connection.execute(PLANNING)
    await connection.execute(_WAITING_RUNS)
    for number in range(1, done + 1):
        await connection.execute(_DONE, [str(WAITS + number)])
    plan = await explained(connection, CLAIM_WAITS, _CLAIM_WAITS)
    assert "runs_due" in plan
    assert "runs_pkey" in plan
    assert not re.search("Seq Scan on runs|Rows Removed by Join Filter", plan), plan
    assert re.search(rf"Tuples Inserted: {done}\b", plan), plan


async def test_waits_of_tree_are_read_without_its_other_runs(connection: LogConnection) -> None:
    await connection.execute(PLANNING)
    await connection.execute(_WAITING_RUNS)
    plan = await explained(connection, WAITING.replace("%b", "%s"), [TREE, ROWS_MAX + 1])
    assert "runs_due" in plan
    # All that was ever in the tree is more with every run.
    assert not re.search("Seq Scan|runs_of_a_tree", plan), plan
    assert re.search(rf"^Limit .*rows={WAITS}\b", plan), plan


ROWS = 3_000
BUFFERS_MAX = 30
RUN = UUID("c4ca4238-a0b9-2382-0dcc-509a6f75849b")  # the md5 of "1"
LONG = UUID(int=1)
"""A run with much output."""

NO_KEYS: Sequence[list[str]] = ([], [], [], [])

QUESTIONS: dict[str, tuple[str, Sequence[Any]]] = {
    "open runs": (OPEN_RUNS, [[RUN], [0], [0], 0]),
    "runs as of": (RUNS_AS_OF, [[RUN], [9], [0], [0], 0]),
    "open sessions": (OPEN_SESSIONS, [["agent:main:s1"], [0], [0], 0]),
    "states of a batch": (STATES, [*NO_KEYS, [RUN], [0], [0], 0, ["agent:main:s1"], [0], [0], 0]),
    "runs closed": (close_rows(RUNS), [[RUN], [9], [False]]),
    "sessions closed": (close_rows(SESSIONS), [["agent:main:s1"], [9], [False]]),
    "waiting lanes": (WAITING_LANES, [1, 1]),
    "next in a lane": (LANE_NEXT, ["subagent", 1, 1]),
    "transcripts locked": (LOCK_TRANSCRIPTS, [[RUN]]),
    "last entries": (LAST_ENTRIES, [[RUN]]),
    "entries written since": (WRITTEN_BEHIND, [ROWS - 5, LONG, ROWS - 5]),
    "a lease forgotten": (FORGET_HOLDER, ["external:one:1"]),
    "keys reserved": (
        STATES,
        [["me"], ["POST"], ["/v1/spawns"], ["1"], [], [], [], 0, [], [], [], 0],
    ),
    "an answer filled in": (ANSWER_IDEMPOTENCY, [[RUN], ["accepted"], ["{}"]]),
}


@pytest.mark.parametrize("name", QUESTIONS)
async def test_plan_of_empty_table_serves_a_grown_one(connection: LogConnection, name: str) -> None:
    sql, values = QUESTIONS[name]
    await connection.execute(WRITER_PLANNING)
    for number in range(1, len(values) + 1):
        sql = re.sub("%[bs]", f"${number}", sql, count=1)
    await connection.execute(f"PREPARE question AS {sql}")
    given = ", ".join(_literal(value) for value in values)
    await connection.execute(f"EXECUTE question({given})")
    for statement in _GROWN:
        await connection.execute(statement, {"rows": ROWS, "long": LONG})
    plan = await explained(connection, f"EXECUTE question({given})")
    assert 0 < buffers_of(plan) < BUFFERS_MAX, plan


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return "'{" + ",".join(f'"{item}"' for item in value) + "}'"
    return f"'{value}'" if isinstance(value, str | UUID) else str(value)


# Many runs wait in one lane after a held one, with as many sessions; not analyzed.
_GROWN = (
    "INSERT INTO runs (run_id, version, created_position, created_at, from_position,"
    " to_position, stage, session_id, requester, root, lane, lane_depth, queued_position,"
    " holder, epoch, state)"
    " SELECT md5(n::text)::uuid, 1, n, now(), n, 4611686018427387904, 'queued',"
    " md5(n::text)::uuid, 'agent:main:r', 'agent:main:r', 'subagent', 1, n,"
    " CASE WHEN n = 1 THEN 'somebody' END, 1, '{}' FROM generate_series(1, %(rows)s) AS n",
    "INSERT INTO idempotency (token, method, path, key, fingerprint, run_id, created_at)"
    " SELECT 'me', 'POST', '/v1/spawns', n::text, '', md5(n::text)::uuid, now()"
    " FROM generate_series(1, %(rows)s) AS n",
    "INSERT INTO transcript_entries (run_id, sequence, recorded_at, kind, body)"
    " SELECT md5(n::text)::uuid, one, now(), 'said', '{}'"
    " FROM generate_series(1, %(rows)s) AS n, generate_series(1, 3) AS one",
    "INSERT INTO transcript_entries (run_id, sequence, recorded_at, kind, body)"
    " SELECT %(long)s, n, now(), 'said', repeat('x', 100) FROM generate_series(1, %(rows)s) AS n",
    "INSERT INTO holders SELECT 'external:one:' || n, NULL, now()"
    " FROM generate_series(1, %(rows)s) AS n",
    "INSERT INTO sessions (session_key, version, created_position, created_at,"
    " from_position, to_position, session_id, root, state)"
    " SELECT 'agent:main:s' || n, 1, n, now(), n, 4611686018427387904, md5(n::text)::uuid,"
    " 'agent:main:r', '{}' FROM generate_series(1, %(rows)s) AS n",
)


def _inside(position: int, end: int) -> Moment:
    family = FamilyLog()
    family.begin("scout")
    return Moment(position, end, family.fold.runs, {})


@pytest.mark.parametrize("moment", [None, moment_at_end(ROWS), _inside(ROWS + 3, ROWS)])
async def test_descendants_of_refused_often_are_found_by_key(
    connection: LogConnection, moment: Moment | None
) -> None:
    """Most rows are of one session, so a walk through all of them seems as good as a look-up."""
    await connection.execute(PLANNING)
    await connection.execute(
        "INSERT INTO runs (run_id, version, created_position, created_at, from_position,"
        " to_position, stage, session_id, requester, root, child_session_key, epoch, state)"
        " SELECT md5(n::text)::uuid, 1, n, now(), n, 4611686018427387904,"
        " CASE WHEN n %% 100 = 0 THEN 'ended' ELSE 'refused' END, md5(n::text)::uuid,"
        " 'agent:main:r', 'agent:main:r', CASE WHEN n %% 100 = 0 THEN 'agent:main:c' || n END, 1,"
        " '{}' FROM generate_series(1, %s) AS n",
        [ROWS],
    )
    await connection.execute("ANALYZE runs")
    query = f"{descendants_sql('stage', moment)} SELECT count(*) FROM below"
    plan = await explained(connection, query, descendants_values("agent:main:r", moment))
    assert "runs_of_a_requester" in plan
    assert not re.search("runs_as_of|Join Filter|Seq Scan", plan), plan
    assert re.search(rf"CTE Scan on below .*rows={ROWS // 100}\b", plan), plan


# Pages of runs.

MANY_RUNS, VERSIONS, PAGE_RUNS = 4_000, 5, 51
BUSY = (StatusRows(("queued",)), StatusRows(("ended",), "success"))
PAGES = {
    "newest": (RunQuery(), MANY_RUNS * VERSIONS, None, False),
    "middle": (RunQuery(), MANY_RUNS * VERSIONS // 2, None, False),
    "first": (RunQuery(), 60, None, False),
    "deep": (RunQuery(), MANY_RUNS * VERSIONS, MANY_RUNS // 2, False),
    "of two statuses": (RunQuery.where(status=BUSY), MANY_RUNS * VERSIONS // 2, None, False),
    "ascending": (RunQuery(), MANY_RUNS * VERSIONS // 2, MANY_RUNS // 3, True),
}


@pytest.fixture
async def many_runs(connection: LogConnection) -> LogConnection:
    """Return a connection to many runs with many versions, interleaved as in a busy log."""
    await connection.execute(
        "INSERT INTO runs (run_id, version, created_position, created_at, from_position,"
        " to_position, stage, session_id, requester, root, epoch, state)"
        " SELECT md5(run::text)::uuid, version, run, now(), run + (version - 1) * %(apart)s,"
        " CASE WHEN version = %(versions)s THEN 4611686018427387904"
        " ELSE run + version * %(apart)s END, 'queued', md5(run::text)::uuid,"
        " 'agent:main:r' || run %% 200, 'agent:main:r' || run %% 200, 1, '{}'"
        " FROM generate_series(1, %(runs)s) AS run, generate_series(1, %(versions)s) AS version",
        {"runs": MANY_RUNS, "versions": VERSIONS, "apart": MANY_RUNS},
    )
    await connection.execute("ANALYZE runs")
    return connection


@pytest.mark.parametrize("is_inside", [False, True])
async def test_page_of_runs_goes_along_its_index(many_runs: LogConnection, is_inside: bool) -> None:
    if is_inside:
        await many_runs.execute(PLANNING)
    for name, (query, at, behind, ascending) in PAGES.items():
        moment = _inside(at + 3, at) if is_inside else moment_at_end(at)
        page = page_of_runs(query, moment, PAGE_RUNS, behind, ascending=ascending)
        plan = await explained(many_runs, *page)
        assert re.search(r"Index Scan (Backward )?using runs_as_of", plan), f"{name}: {plan}"
        assert is_inside or "Sort" not in plan, f"{name}: {plan}"
        assert buffers_of(plan) < PAGE_RUNS * VERSIONS * 3, f"{name}: {plan}"


async def test_generic_plan_of_page_goes_along_an_index(many_runs: LogConnection) -> None:
    """A connection that repeats a query uses one plan for all values."""
    for query, index in {
        RunQuery(): "runs_as_of",
        RunQuery.where(requester="agent:main:r7"): "runs_of_a_requester",
        RunQuery.where(root="agent:main:r7"): "runs_of_a_tree",
        RunQuery.where(root="agent:main:r7", status=BUSY, agent_id=("a", "b")): "runs_of_a_tree",
        RunQuery.where(label=("one",)): "runs_by_label",
        RunQuery.where(rule="depth"): "runs_refused_by_a_rule",
        RunQuery.where(label=("one", "two")): "runs_by_label",
        RunQuery.where(respawned_from=UUID(int=7)): "runs_by_respawned_from",
    }.items():
        sql, values = page_of_runs(query, moment_at_end(1), PAGE_RUNS, 1, ascending=False)
        for number in range(1, len(values) + 1):
            sql = sql.replace("%s", f"${number}", 1)
        generic = await many_runs.execute(f"EXPLAIN (GENERIC_PLAN) {sql}")
        plan = "\n".join(row[0] for row in await generic.fetchall())
        assert index in plan, plan


async def test_columns_by_creation_have_an_index(connection: LogConnection) -> None:
    found = await connection.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'runs'")
    indexes = [re.search(r"\((\w+), created_position\)", row[0]) for row in await found.fetchall()]
    assert {index.group(1) for index in indexes if index is not None} == COLUMNS_BY_CREATION


async def test_respawns_are_found_along_their_index(many_runs: LogConnection) -> None:
    values = [[UUID(int=7)] * 50, [MANY_RUNS * VERSIONS] * 50, 100]
    plan = await explained(many_runs, RESPAWNS, values)
    assert "Index Scan using runs_by_respawned_from" in plan, plan
    assert "Seq Scan" not in plan, plan


# Streams that changed between two positions.

CHANGES, CHANGES_OF_A_STREAM, SPAN = 100_000, 20, 500
_CHANGED = (
    "INSERT INTO events (position, stream, version, type, type_version, recorded_at,"
    " occurred_at, event_id, command_id, actor_kind, correlation, config_revision,"
    " append_last, writer_version, chain_hash, state)"
    " SELECT position, 'session:' || position / %(each)s, position %% %(each)s + 1,"
    " 'ChildAdmitted', 1, now(), now(), md5(position::text)::uuid, md5(position::text)::uuid,"
    " 'system', 'tree-' || position %% 50, 0, position, '0', '\\x00', '{}'"
    " FROM generate_series(1, %(events)s) AS position",
    "INSERT INTO commits SELECT position, now() FROM generate_series(10, %(events)s, 10)"
    " AS position",
    "INSERT INTO sessions (session_key, version, created_position, created_at, from_position,"
    " to_position, session_id, root, state)"
    " SELECT position / %(each)s, position %% %(each)s + 1, position, now(), position,"
    " CASE WHEN position %% %(each)s = %(each)s - 1 THEN 4611686018427387904"
    " ELSE position + 1 END, md5(position::text)::uuid, 'root',"
    " CASE WHEN position %% %(each)s IN (0, %(each)s - 1) THEN '{}' END"
    " FROM generate_series(1, %(events)s) AS position",
)


@pytest.mark.parametrize("is_analysed", [False, True])
async def test_changed_streams_cost_as_many_pages_as_their_events(
    connection: LogConnection, is_analysed: bool
) -> None:
    for statement in _CHANGED:
        await connection.execute(statement, {"each": CHANGES_OF_A_STREAM, "events": CHANGES})
    if is_analysed:
        await connection.execute("ANALYZE")
    for after in (SPAN, CHANGES // 2, CHANGES - SPAN):
        span: dict[str, Any] = {
            "after": after,
            "until": after + SPAN,
            "after_cursor": after,
            "events_max": 5_000,
            "tree": "tree-7",
        }
        keys = [str(after // CHANGES_OF_A_STREAM + number) for number in range(20)]
        newest, oldest = (
            events_between(after=after, limit=9, run_id=UUID(int=7), newest_first=is_newest)
            for is_newest in (True, False)
        )
        for sql, values, pages_max in (
            (CHANGED_STREAMS, span, SPAN * 2),
            (CHANGED_STREAMS_OF_A_TREE, span, SPAN * 2),
            (*query_of_sessions([(key, [after]) for key in keys]), 20 * 10),
            (INSIDE, {"at": after - 3, "after_cursor": "", "limit": 20}, 20 * 10),
            (*newest, 9),
            (*oldest, 9),
        ):
            plan = await explained(connection, sql, values)
            assert "Seq Scan" not in plan, plan
            # The first line has the buffers of the whole query.
            (pages, *_) = re.findall(r"Buffers: shared hit=(\d+)", plan)
            assert int(pages) < pages_max, plan


# One long stream.

LONG_STREAM, LONG_STREAM_PAGES_MAX = 10_000, 100
_LONG_STREAM = (
    _CHANGED[0]
    .replace("'session:' || position / %(each)s", "%(stream)s")
    .replace("position %% %(each)s + 1", "position")
)


@pytest.mark.parametrize("newest_first", [False, True])
async def test_page_of_run_events_costs_no_more_in_a_long_stream(
    connection: LogConnection, newest_first: bool
) -> None:
    run_id = UUID(int=7)
    stream = {"stream": f"run:{run_id}", "events": LONG_STREAM}
    await connection.execute(_LONG_STREAM, stream)
    await connection.execute("ANALYZE")
    middle = LONG_STREAM // 2
    for after, until in ((0, 9), (middle, None), (middle, middle + 9), (LONG_STREAM - 9, None)):
        sql, values = events_between(
            after=after, until=until, limit=9, run_id=run_id, newest_first=newest_first
        )
        plan = await explained(connection, sql, values)
        (pages, *_) = re.findall(r"Buffers: shared hit=(\d+)", plan)
        assert int(pages) < LONG_STREAM_PAGES_MAX, plan
        found = await (await connection.execute(sql, values)).fetchall()
        last = until or LONG_STREAM
        first = last - 8 if newest_first else after + 1
        assert sorted(row[0] for row in found) == list(range(first, first + 9))

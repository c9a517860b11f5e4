"""Every query that reads how things were goes along an index: beside a record of a million events
it touches as few pages as beside a small one, wherever in it the question is."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import psycopg
import pytest

from application.ports.registry import InboxQuery
from application.projections.fold import FOREVER
from infrastructure.outbound.log.read.events import EVENTS_OF_STREAMS, VERSIONS_AT
from infrastructure.outbound.log.read.moments import moment_at_end
from infrastructure.outbound.log.schema.connections import PLANNING
from infrastructure.outbound.read_model.registry import (
    LANES_AS_OF,
    RUNS_BY_ID,
    page_of_inbox,
)

# How a query is carried out, and how many pages that touches.


class PlannedQuery(NamedTuple):
    """A query as it is sent, and values such as a server sends with it."""

    sql: str
    values: Sequence[Any] | Mapping[str, Any]


def plan_of(connection: psycopg.Connection[Any], query: PlannedQuery) -> str:
    """How it was carried out; what it changed is undone."""
    with connection.transaction(force_rollback=True):
        cursor = connection.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, SUMMARY OFF) {query.sql}", query.values
        )
        return "\n".join(row[0] for row in cursor.fetchall())


def pages_touched(plan: str) -> int:
    """How many pages were looked at, wherever they were."""
    whole = re.search(r"Buffers: shared (.*)", plan)
    return sum(int(pages) for pages in re.findall(r"(?:hit|read)=(\d+)", whole[1])) if whole else 0


pytestmark = [pytest.mark.server, pytest.mark.long]

LIVES, EVENTS_OF_A_LIFE, SESSIONS = 70_000, 15, 500
EVENTS = LIVES * EVENTS_OF_A_LIFE
OVERLAP = 12
"""So many lives are under way at once, those of every hundredth for as long as a hundred others."""
LAST_LIFE = 40
REVISIONS = 20_000
PAGES_MAX = 260

# A life waits, executes, is announced and is put away; and each of these states ends a while after.
_RUNS = (
    "INSERT INTO runs (run_id, version, created_position, created_at, from_position, to_position,"
    " stage, session_id, requester, root, lane, lane_depth, queued_position, holder, epoch,"
    " inbox_position, parked_position, state)"
    f" SELECT md5(life::text)::uuid, part, life * {EVENTS_OF_A_LIFE}, now(),"
    f" life * {EVENTS_OF_A_LIFE} + part * stretch,"
    f" CASE WHEN part = 5 OR (life > {LIVES - LAST_LIFE} AND part = 2) THEN {FOREVER}"
    f" ELSE life * {EVENTS_OF_A_LIFE} + (part + 1) * stretch END,"
    " (ARRAY['queued', 'started', 'announced', 'announced', 'archived'])[part],"
    f" md5(life::text)::uuid, 'agent:main:s' || life %% {SESSIONS}, 'agent:main:main',"
    " CASE WHEN part < 3 THEN 'subagent' END, 1, life, CASE WHEN part = 2 THEN 'somebody' END, 1,"
    f" CASE WHEN part > 2 THEN life * {EVENTS_OF_A_LIFE} + 3 * stretch END,"
    f" CASE WHEN part > 3 AND life %% 50 = 0 THEN life * {EVENTS_OF_A_LIFE} + 4 * stretch END,"
    " CASE WHEN part = 5 THEN '{}' END"
    " FROM generate_series(%(first)s::int, %(last)s::int) AS life, generate_series(1, 5) AS part,"
    " LATERAL (SELECT CASE WHEN life %% 100 = 0 THEN 300 ELSE"
    f" {OVERLAP * EVENTS_OF_A_LIFE // 5} END AS stretch) AS pace"
    f" WHERE life <= {LIVES - LAST_LIFE} OR part < 3"
)
_EVENTS = (
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


def _fill(connection: psycopg.Connection[Any], first: int, last: int) -> None:
    for statement in (_RUNS, _EVENTS):
        connection.execute(statement, {"first": first, "last": last})


def _questions(at: int) -> Mapping[str, PlannedQuery]:
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


def _leave_as_it_is(_: psycopg.Connection[Any]) -> None:
    """They are of when there were few."""


def _analyse(connection: psycopg.Connection[Any]) -> None:
    connection.execute("ANALYZE")


def _forget(connection: psycopg.Connection[Any]) -> None:
    tables = ["runs", "events"]
    connection.execute("DELETE FROM pg_statistic WHERE starelid = ANY(%s::regclass[])", [tables])
    connection.execute("UPDATE pg_class SET reltuples = -1 WHERE relname = ANY(%s)", [tables])


STATISTICS: Mapping[str, Callable[[psycopg.Connection[Any]], None]] = {
    "stale": _leave_as_it_is,
    "fresh": _analyse,
    "missing": _forget,
}


@pytest.mark.nightly
def test_how_it_was_is_found_without_reading_what_was_before_or_came_after(
    database_url: str,
) -> None:
    walks: dict[str, str] = {}
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(PLANNING)
        for table in ("runs", "events"):
            connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        _fill(connection, 1, 100)
        connection.execute("ANALYZE")
        _fill(connection, 101, LIVES)
        connection.execute("UPDATE log_head SET position = %s", [EVENTS])
        positions: Sequence[int] = (1_000, EVENTS // 2, EVENTS - 100, EVENTS)
        for state, change in STATISTICS.items():
            change(connection)
            for at in positions:
                for name, query in _questions(at).items():
                    plan = plan_of(connection, query)
                    if pages_touched(plan) > PAGES_MAX:
                        walks[f"{name}, as of {at}, statistics {state}"] = plan
        then = connection.execute(LANES_AS_OF, {"at": EVENTS // 2, "changed": []}).fetchall()
        assert len(then) == _in_lanes(connection, EVENTS // 2) > OVERLAP / 3
    assert walks == {}, "\n\n".join(f"{name}\n{plan}" for name, plan in walks.items())


def _in_lanes(connection: psycopg.Connection[Any], at: int) -> int:
    cursor = connection.execute(
        "SELECT count(*) FROM runs WHERE lane IS NOT NULL AND from_position <= %s"
        " AND to_position > %s",
        [at, at],
    )
    row = cursor.fetchone()
    assert row is not None
    return int(row[0])

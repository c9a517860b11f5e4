"""Who changed between two positions, and how all of them were: each adapter, and what it costs."""

import random
import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from application.ports.registry import Registry
from domain.values.record import run_id_of, session_key_of
from infrastructure.outbound.log.read.events import events_between
from infrastructure.outbound.log.read.fold_input import (
    SPAN_POSITIONS_MAX,
    query_of_sessions,
    spans_of,
)
from infrastructure.outbound.log.read.moments import INSIDE
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.read_model.registry import (
    CHANGED_STREAMS,
    CHANGED_STREAMS_OF_A_TREE,
)
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.storytelling import ROOT
from tests.support.builders.whole_story import tell_everything
from tests.support.memory.served_log import ServedLog
from tests.support.tiers import stride

EVENTS = 100_000
EVENTS_OF_A_STREAM = 20
SPAN = 500


async def _all_pages(
    registry: Registry, after: int, until: int, events_max: int, tree: str | None
) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    behind = after
    while behind < until:
        page = await registry.changed_streams(
            after=after, until=until, behind=behind, events_max=events_max, tree=tree
        )
        assert behind < page.examined <= until
        assert all(behind < one.position <= page.examined for one in page.streams)
        found += page.streams
        behind = page.examined
    return found


@pytest.mark.server
async def test_each_stream_with_events_between_two_positions_is_found_once(
    running: ServedLog, registry: Registry
) -> None:
    await tell_everything(running)
    await LoggedFamily(running.log, root="agent:main:other", first=500).live("elsewhere")
    events = [one.envelope for one in await running.events()]
    die = random.Random(7)
    for _ in range(30):
        after, until = sorted(die.randint(0, len(events)) for _ in range(2))
        tree = die.choice([None, ROOT, "agent:main:other"])
        first: dict[str, int] = {}
        for one in events[after:until]:
            if tree is None or one.provenance.correlation == tree:
                first.setdefault(one.stream, one.position)
        found = await _all_pages(registry, after, until, die.choice([1, 7, 1000]), tree)
        assert found == sorted(first.items(), key=lambda one: one[1])


@pytest.mark.server
async def test_several_states_are_those_of_each_alone(
    running: ServedLog, registry: Registry
) -> None:
    await tell_everything(running)
    streams = {one.envelope.stream for one in await running.events()}
    run_ids = [id for id in map(run_id_of, streams) if id is not None]
    keys = [key for key in map(session_key_of, streams) if key is not None]
    every = range(0, await running.log.head() + 1, stride(17))
    for at, found in zip(every, await registry.states(run_ids, keys, at=every), strict=True):
        runs = {id: await registry.run(id, at=at) for id in run_ids}
        sessions = {key: await registry.session(key, at=at) for key in keys}
        assert found.runs == {id: run for id, run in runs.items() if run is not None}
        assert found.sessions == {key: one for key, one in sessions.items() if one is not None}
    assert await registry.states([], [], at=[0]) == [({}, {})]
    assert await registry.states(run_ids, keys, at=[]) == []


def test_positions_far_apart_are_not_folded_in_one_go() -> None:
    near, far = 1 + SPAN_POSITIONS_MAX, 2 + SPAN_POSITIONS_MAX
    spans = spans_of([("b", 5), ("a", far), ("a", near), ("a", 1)])
    assert spans == [("a", [1, near]), ("a", [far]), ("b", [5])]


async def _fill(connection: LogConnection) -> None:
    await connection.execute(
        "INSERT INTO events (position, stream, version, type, type_version, recorded_at,"
        " occurred_at, event_id, command_id, actor_kind, correlation, config_revision,"
        " append_last, writer_version, chain_hash, state)"
        " SELECT position, 'session:' || position / %(each)s, position %% %(each)s + 1,"
        " 'ChildAdmitted', 1, now(), now(), md5(position::text)::uuid, md5(position::text)::uuid,"
        " 'system', 'tree-' || position %% 50, 0, position, '0', '\\x00', '{}'"
        " FROM generate_series(1, %(events)s) AS position",
        {"each": EVENTS_OF_A_STREAM, "events": EVENTS},
    )
    await connection.execute(
        "INSERT INTO commits SELECT position, now() FROM generate_series(10, %s, 10) AS position",
        [EVENTS],
    )
    await connection.execute(
        "INSERT INTO sessions (session_key, version, created_position, created_at, from_position,"
        " to_position, session_id, root, state)"
        " SELECT position / %(each)s, position %% %(each)s + 1, position, now(), position,"
        " CASE WHEN position %% %(each)s = %(each)s - 1 THEN 4611686018427387904"
        " ELSE position + 1 END, md5(position::text)::uuid, 'root',"
        " CASE WHEN position %% %(each)s IN (0, %(each)s - 1) THEN '{}' END"
        " FROM generate_series(1, %(events)s) AS position",
        {"each": EVENTS_OF_A_STREAM, "events": EVENTS},
    )


async def _plan(connection: LogConnection, sql: str, values: Any) -> str:
    explained = await connection.execute(f"EXPLAIN (ANALYZE, BUFFERS) {sql}", values)
    return "\n".join(row[0] for row in await explained.fetchall())


def _pages_touched(plan: str) -> int:
    return int(re.findall(r"Buffers: shared hit=(\d+)", plan)[0])


@pytest.mark.server
@pytest.mark.parametrize("is_analysed", [False, True])
async def test_the_cost_is_that_of_the_events_between_the_two(
    connection: LogConnection, is_analysed: bool
) -> None:
    await _fill(connection)
    if is_analysed:
        await connection.execute("ANALYZE")
    touched: list[int] = []
    for after in (SPAN, EVENTS // 2, EVENTS - SPAN):
        values: dict[str, Any] = {
            "after": after,
            "until": after + SPAN,
            "behind": after,
            "events_max": 5_000,
            "tree": "tree-7",
        }
        for sql in (CHANGED_STREAMS, CHANGED_STREAMS_OF_A_TREE):
            plan = await _plan(connection, sql, values)
            assert "Seq Scan" not in plan, plan
            touched.append(_pages_touched(plan))
        keys: Sequence[str] = [str(after // EVENTS_OF_A_STREAM + one) for one in range(20)]
        plan = await _plan(connection, *query_of_sessions([(key, [after]) for key in keys]))
        assert "Seq Scan" not in plan, plan
        assert _pages_touched(plan) < 20 * 10, plan
        plan = await _plan(connection, INSIDE, {"at": after - 3, "behind": "", "limit": 20})
        assert "Seq Scan" not in plan, plan
        assert _pages_touched(plan) < 20 * 10, plan
        for newest_first in (False, True):
            query = events_between(
                after=after, limit=9, run_id=UUID(int=7), newest_first=newest_first
            )
            plan = await _plan(connection, *query)
            assert "Seq Scan" not in plan, plan
            assert _pages_touched(plan) < 9, plan
    assert max(touched) < SPAN * 2, touched

"""Reads by position: pages without gaps, whatever the reader's session settings."""

from itertools import product
from typing import Any

import pytest

from domain.values.refusals import CorruptHistoryError
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.read.events import events_between, read_events
from infrastructure.outbound.log.schema.connections import LogConnection
from tests.support.servers.running_log import RunningLog


@pytest.mark.parametrize("limit", [1, 7, 1_000])
@pytest.mark.told("everything")
async def test_pages_join_without_a_seam(
    running: RunningLog, connection: LogConnection, limit: int
) -> None:
    head = await running.log.head()
    found: list[int] = []
    for _ in range(head + 2):
        page = await read_events(
            connection, EventMapper(), after=found[-1] if found else 0, limit=limit
        )
        assert len(page) <= limit
        if not page:
            break
        found += [event.envelope.position for event in page]
    assert found == list(range(1, head + 1))


@pytest.mark.told("everything")
async def test_unreadable_event_is_told_by_its_place(
    running: RunningLog, connection: LogConnection
) -> None:
    await running.ask("UPDATE events SET state = '{\"x\": 1}'::bytea WHERE position = 9")
    assert len(await read_events(connection, EventMapper(), after=0, limit=8)) == 8
    with pytest.raises(CorruptHistoryError, match=r"version \d+ of (run|session):"):
        await read_events(connection, EventMapper(), after=8, limit=1)


@pytest.mark.told("everything")
async def test_filters_use_the_indexes_made_for_them(
    running: RunningLog, connection: LogConnection
) -> None:
    await connection.execute("SET enable_seqscan = off; SET enable_sort = off")
    # Without statistics, the planner might scan by position, as for a tree with most events.
    await connection.execute("ANALYZE events")
    ranges: list[tuple[dict[str, Any], str]] = [
        ({"correlations": ["agent:main:seldom"]}, "events_of_a_tree"),
        ({"after": 7}, "events_pkey"),
        ({"actor": "admin"}, "events_pkey"),
    ]
    for (range_, index), newest_first in product(ranges, (False, True)):
        given = {"after": 3, "limit": 5, "newest_first": newest_first} | range_
        sql, values = events_between(**given)
        cursor = await connection.execute(f"EXPLAIN {sql}", values)
        plan = " ".join(row[0] for row in await cursor.fetchall())
        assert index in plan, plan

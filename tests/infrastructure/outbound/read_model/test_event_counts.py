"""Stored counts of events equal those of a full scan, however far they were stored."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from application.log.envelope import RecordedEvent
from application.log.event_log import LogUnavailableError
from application.ports.event_counts import EventQuery, EventTally
from domain.run.events import RunEnded, SpawnRefused
from domain.values.refusals import CorruptHistoryError
from infrastructure.outbound.log.rebuild.rebuild import rebuild
from infrastructure.outbound.read_model.event_counts import PostgresEventCounts, live_runs_at
from tests.support.models.random_family import live_at_random
from tests.support.servers.running_log import RunningLog
from tests.support.tiers import examples, nightly_but

pytestmark = pytest.mark.db
PACES = [(1, 1), (4, 8), (64, 8192)]


def tally_of(events: Sequence[RecordedEvent]) -> EventTally:
    """Count events one by one."""
    tally: Counter[str] = Counter()
    for recorded in events:
        name = recorded.envelope.type
        tally[name] += 1
        match recorded.event:
            case RunEnded():
                tally[f"{name}/{recorded.event.outcome}"] += 1
            case SpawnRefused():
                tally[f"{name}/{recorded.event.rule}"] += 1
    return tally


def counting(
    running: RunningLog, block: int = 4, noted: int = 8, **more: Any
) -> PostgresEventCounts:
    return PostgresEventCounts(running.pool, block_events=block, noted_events=noted, **more)


async def rows(running: RunningLog) -> list[Any]:
    """Return all stored counts."""
    return [
        await running.ask("SELECT last_position, counts::text FROM event_counts ORDER BY 1"),
        await running.ask("SELECT * FROM live_runs ORDER BY 1"),
    ]


@pytest.mark.server
@pytest.mark.parametrize(("block", "noted"), nightly_but(PACES, PACES[1:2]))
@pytest.mark.told("everything")
async def test_counts_up_to_every_position_are_right(
    running: RunningLog, block: int, noted: int
) -> None:
    events = await running.events()
    counts = counting(running, block, noted)
    head = len(events)
    for kept in (0, head // 2, head):
        assert await counts.count_up_to(kept) == kept // block * block
        found = await counts.up_to(range(head + 1))
        assert [dict(item) for item in found] == [
            dict(tally_of(events[:position])) for position in range(head + 1)
        ]


@pytest.mark.server
@pytest.mark.told("everything")
async def test_counts_of_runs_and_trees_are_right(running: RunningLog) -> None:
    events = await running.events()
    counts = counting(running)
    await counts.count_up_to(len(events) * 2 // 3)
    trees = {event.envelope.provenance.correlation for event in events} - {None}
    runs = {event.envelope.provenance.run_id for event in events} - {None}
    actors = {event.envelope.provenance.actor.kind for event in events}
    loop = asyncio.get_running_loop()

    async def holds(edges: list[int], query: EventQuery) -> None:
        found = await counts.up_to(edges)
        assert [dict(item) for item in found] == [dict(tally_of(events[:edge])) for edge in edges]
        some = await counts.of_some(query, edges)
        meant = [
            [event for event in events[after:until] if _is_of(event, query)]
            for after, until in pairwise(edges)
        ]
        assert some.counted_to is None
        assert [dict(tally) for tally in some.tallies] == [dict(tally_of(those)) for those in meant]

    queries = st.builds(
        EventQuery,
        run_id=st.sampled_from([None, *sorted(map(str, runs))]),
        tree=st.sampled_from([None, *sorted(trees)]),  # type: ignore[type-var]
        actor=st.sampled_from([None, *sorted(actors)]),
    )
    edges = st.lists(st.integers(0, len(events)), min_size=2, max_size=30).map(sorted)

    @examples(60, suppress_health_check=list(HealthCheck))
    @given(edges, queries)
    def everywhere(edges: list[int], query: EventQuery) -> None:
        asyncio.run_coroutine_threadsafe(holds(edges, query), loop).result(30)

    await asyncio.to_thread(everywhere)


def _is_of(recorded: RecordedEvent, query: EventQuery) -> bool:
    source = recorded.envelope.provenance
    return (
        (query.run_id is None or str(source.run_id) == str(query.run_id))
        and (query.tree is None or source.correlation == query.tree)
        and (query.actor is None or query.actor in source.actor)
    )


@pytest.mark.server
async def test_counts_at_once_cancelled_or_anew_are_the_same(running: RunningLog) -> None:
    await live_at_random(running, 7, rounds=15, at_once=3)
    head = await running.log.head()
    await counting(running).count_up_to(head)
    kept = await rows(running)
    assert len(kept[0]) == head // 4
    assert len(kept[1]) == head // 8
    await counting(running).count_up_to(head)
    assert await rows(running) == kept
    for _ in range(2):
        await running.ask("TRUNCATE event_counts, live_runs")
        await asyncio.gather(*(counting(running).count_up_to(head) for _ in range(4)))
        assert await rows(running) == kept
    await running.ask("TRUNCATE event_counts, live_runs")
    while (await running.ask("SELECT count(*) FROM event_counts"))[0][0] < head // 8:
        task = asyncio.ensure_future(counting(running).count_up_to(head))
        for _ in range(40):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await counting(running).count_up_to(head)
    assert await rows(running) == kept
    await rebuild(running.url)
    assert await rows(running) == kept


@pytest.mark.server
async def test_live_runs_are_what_events_say(running: RunningLog) -> None:
    await live_at_random(running, 11, rounds=15, at_once=3)
    events = await running.events()
    await counting(running).count_up_to(len(events) - 5)
    live: set[Any] = set()
    async with running.pool.connection() as connection:
        for recorded in events:
            envelope = recorded.envelope
            run_id = envelope.provenance.run_id
            if envelope.type in ("SpawnRequested", "MessageReceived"):
                live.add(run_id)
            elif envelope.type in ("RunEnded", "SpawnRefused"):
                live.discard(run_id)
            assert await live_runs_at(connection, envelope.position) == live


async def test_uncounted_part_is_told_and_not_read(running: RunningLog) -> None:
    await live_at_random(running, 13, rounds=8, at_once=3)
    head = await running.log.head()
    counts = counting(running, read_events_max=6)
    with pytest.raises(LogUnavailableError, match=f"still being counted, 0 of {head} so far"):
        await counts.up_to([head])
    await counts.count_up_to(head)
    (found,) = await counts.up_to([head])
    assert found == tally_of(await running.events())


async def test_part_with_missing_events_is_not_kept(running: RunningLog) -> None:
    await live_at_random(running, 13, rounds=8, at_once=3)
    head = await running.log.head()
    with pytest.raises(CorruptHistoryError, match="some of the events"):
        await counting(running).count_up_to(head + 8)
    kept = await rows(running)
    assert kept[0][-1][0] <= head
    await counting(running).count_up_to(head)
    (found,) = await counting(running).up_to([head])
    assert found == tally_of(await running.events())


async def test_events_of_long_tree_are_limited(running: RunningLog) -> None:
    await live_at_random(running, 17, rounds=8, at_once=3)
    events = await running.events()
    tree = events[-1].envelope.provenance.correlation
    whole = [event for event in events if event.envelope.provenance.correlation == tree]
    counts = counting(running, examined_events_max=9)
    found = await counts.of_some(EventQuery(tree=tree), [0, 5, len(events)])
    assert found.counted_to == whole[9].envelope.position
    assert sum((Counter(tally) for tally in found.tallies), Counter()) == tally_of(whole[:10])

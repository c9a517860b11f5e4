"""Histogram, timeline, moments and trees match the first events of a history."""

from datetime import timedelta
from typing import Any

import pytest

from application.queries.errors import QueryError
from application.queries.services import QueryServices
from application.queries.timeline.bars import ListTimeline, list_timeline
from application.queries.timeline.histogram import CountEvents, HistogramView, count_events
from application.queries.timeline.moments import GetMoment, get_moment
from application.queries.timeline.tree import GetSessionTree, TreeNodeView, get_session_tree
from tests.support.builders import run_commands as ask
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.logged_messages import send
from tests.support.builders.query_services import caller
from tests.support.builders.storytelling import ROOT
from tests.support.builders.whole_story import tell_everything
from tests.support.models.random_family import live_at_random
from tests.support.servers.running_log import RunningLog

pytestmark = pytest.mark.db
READER = caller("read")


async def test_whole_log_needs_every_pattern(services: QueryServices, running: RunningLog) -> None:
    await tell_everything(running)
    some = caller("read", session=("agent:main:main", "agent:main:other"))
    with pytest.raises(QueryError, match=r"all sessions \(\*\); name a run or a tree") as refused:
        await count_events(services, some, CountEvents())
    assert refused.value.code == "not_permitted"
    with pytest.raises(QueryError, match="does not act for the session of that tree"):
        await count_events(services, some, CountEvents(tree="agent:main:stranger"))
    own = (await count_events(services, some, CountEvents(tree=ROOT))).view
    meant = [
        event for event in await running.events() if event.envelope.provenance.correlation == ROOT
    ]
    assert sum(bucket.events for bucket in own.items) == len(meant) > 0
    assert (await list_timeline(services, some, ListTimeline())).view.buckets == []
    with pytest.raises(QueryError, match=r"all sessions \(\*\)"):
        await list_timeline(services, some, ListTimeline(buckets=5))
    with pytest.raises(QueryError, match="only applies within a run or a tree; name one"):
        await count_events(services, READER, CountEvents(actor="system"))
    with pytest.raises(
        QueryError, match="/query/from: is pos:5, which is after the end of the range, pos:3"
    ):
        await count_events(services, READER, CountEvents(begin="pos:5", end="pos:3"))
    with pytest.raises(QueryError, match=r"/query/to: .* is not a moment"):
        await count_events(services, READER, CountEvents(end="yesterday"))


async def test_empty_range_has_no_buckets(services: QueryServices, running: RunningLog) -> None:
    await live_at_random(running, 1, rounds=2, at_once=2)
    for by in ("position", "time"):
        found = await count_events(services, READER, CountEvents(by=by, begin="pos:2", end="pos:2"))
        assert found.view == HistogramView(by=by, after=2, until=2, counted_to=None, items=[])


@pytest.mark.server
async def test_bars_are_filtered_by_status(services: QueryServices, running: RunningLog) -> None:
    await live_at_random(running, 4, rounds=15, at_once=3)
    head = await running.log.head()
    window: Any = {"begin": f"pos:{head // 3}", "end": f"pos:{head * 2 // 3}"}
    whole = (await list_timeline(services, READER, ListTimeline(**window))).view
    assert whole.next_cursor is None
    for status in {item.status for item in whole.items}:
        narrow = await list_timeline(services, READER, ListTimeline(statuses=(status,), **window))
        assert narrow.view.items == [item for item in whole.items if item.status == status]


async def test_moment_has_its_neighbors(services: QueryServices, running: RunningLog) -> None:
    await live_at_random(running, 6, rounds=6, at_once=3)
    events = await running.events()
    middle = events[len(events) // 2].envelope
    found = (
        await get_moment(services, READER, GetMoment(at=f"pos:{middle.position}", around=3))
    ).view
    assert (found.position, found.recorded_at) == (middle.position, middle.recorded_at)
    assert [item.position for item in found.before] == [middle.position - 2 + n for n in range(3)]
    assert [item.position for item in found.after] == [middle.position + 1 + n for n in range(3)]
    assert found.before[-1].type == middle.type
    later = (middle.recorded_at + timedelta(microseconds=1)).isoformat()
    at_instant = (await get_moment(services, READER, GetMoment(at=later))).view
    assert at_instant.position >= middle.append_last
    assert at_instant.recorded_at == middle.recorded_at
    before_all = (await get_moment(services, READER, GetMoment(at="pos:0"))).view
    assert (before_all.position, before_all.recorded_at, before_all.before) == (0, None, [])
    for_some = (
        await get_moment(services, caller("read", session=("agent:x:y",)), GetMoment())
    ).view
    assert (for_some.before, for_some.after, for_some.config_revision) == ([], [], None)


def _walk(node: TreeNodeView) -> list[TreeNodeView]:
    return [node, *(item for child in node.children for item in _walk(child))]


async def _a_family(running: RunningLog) -> None:
    """Record three levels of runs: refused, prepared, ended, and running."""
    family = LoggedFamily(running.log, max_children=8, max_spawn_depth=3)
    await family.begin("scout")
    await family.begin("other")
    for name in ("one", "two", "three"):
        await family.begin(name, "scout")
    await family.begin("deep", "one")
    await family.queue("deeper", "one")
    await family.spawn("asked", "two")
    await family.spawn("refused", "two")
    await family.tell("refused", ask.refuse(family.run("refused").epoch))
    await family.queue("under", "other")
    for name in ("deep", "two", "three"):
        await family.end(name)
    await family.announce("three")
    await send(family, "again", "three")
    await family.spawn("late", "main")


@pytest.mark.server
async def test_large_tree_says_where_it_was_cut(
    services: QueryServices, running: RunningLog
) -> None:
    await _a_family(running)
    whole = (await get_session_tree(services, READER, ROOT, GetSessionTree())).view
    deep = max(len(_walk(child)) for child in whole.root.children)
    assert deep > 1
    for limit in range(1, whole.nodes + 1):
        found = (await get_session_tree(services, READER, ROOT, GetSessionTree(limit=limit))).view
        assert found.nodes == limit
        assert found.cut == (limit < whole.nodes)
        by_key = {node.session_key: node for node in _walk(whole.root)}
        for node in _walk(found.root):
            there = len(by_key[node.session_key].children)
            assert node.children_cut == (len(node.children) < there)
    flat = (await get_session_tree(services, READER, ROOT, GetSessionTree(depth=1))).view
    assert flat.nodes == len(whole.root.children) + 1
    assert flat.cut
    child = next(child for child in whole.root.children if child.children)
    assert child.session_key is not None
    below = (await get_session_tree(services, READER, child.session_key, GetSessionTree())).view
    assert below.root == child

"""Histogram, timeline, moments and trees are what the first events of a history say."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from application.log.envelope import Actor, RecordedEvent
from application.projections.fold import Fold
from application.queries.access import AccessScope, Caller
from application.queries.errors import QueryError
from application.queries.services import QueryServices
from application.queries.timeline.bars import ListTimeline, list_timeline
from application.queries.timeline.histogram import (
    CountEvents,
    EventBucketView,
    HistogramView,
    count_events,
)
from application.queries.timeline.moments import GetMoment, get_moment
from application.queries.timeline.tree import GetSessionTree, TreeNodeView, get_session_tree
from application.queries.views.run import status_of
from domain.run.events import RunEnded, SpawnRefused
from domain.run.state import Run
from tests.support.builders import run_commands as ask
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.logged_messages import send
from tests.support.builders.query_services import query_services
from tests.support.builders.storytelling import ROOT
from tests.support.builders.whole_story import tell_everything
from tests.support.models.random_family import live_at_random
from tests.support.servers.running_log import RunningLog
from tests.support.tiers import examples

pytestmark = pytest.mark.db


def caller(*scopes: AccessScope, patterns: tuple[str, ...] = ("*",)) -> Caller:
    return Caller(
        actor=Actor("token", "somebody"), scopes=frozenset(scopes or ("read",)), patterns=patterns
    )


@pytest.fixture
async def services(running: RunningLog, tmp_path: Path) -> QueryServices:
    return await query_services(running, tmp_path)


def types_of(events: Sequence[RecordedEvent]) -> dict[str, int]:
    return dict(sorted(Counter(one.envelope.type for one in events).items()))


def outcomes_of(events: Sequence[RecordedEvent]) -> dict[str, int]:
    return dict(Counter(one.event.outcome for one in events if isinstance(one.event, RunEnded)))


def rules_of(events: Sequence[RecordedEvent]) -> dict[str, int]:
    return dict(Counter(one.event.rule for one in events if isinstance(one.event, SpawnRefused)))


def holds(bucket: EventBucketView, events: Sequence[RecordedEvent]) -> None:
    """The bucket is of just these events."""
    assert bucket.events == len(events)
    assert bucket.types == types_of(events)
    assert bucket.outcomes == outcomes_of(events)
    assert bucket.rules == rules_of(events)
    ends = [events[0].envelope, events[-1].envelope] if events else []
    assert [one.position for one in ends] == (
        [bucket.first_position, bucket.last_position] if events else []
    )
    assert [one.recorded_at for one in ends] == ([bucket.first_at, bucket.last_at] if ends else [])
    if not events:
        assert (bucket.first_position, bucket.last_position, bucket.first_at) == (None,) * 3


@pytest.mark.server
async def test_the_counts_of_buckets_are_those_of_a_look_at_every_event(
    services: QueryServices, running: RunningLog
) -> None:
    await live_at_random(running, 1, rounds=20, at_once=3)
    events = await running.events()
    await services.event_counts.count_up_to(len(events) * 3 // 4)
    loop = asyncio.get_running_loop()

    async def everything_is_counted(
        buckets: int, by: Any, ends: tuple[int, int], tree: str | None, types: tuple[str, ...]
    ) -> None:
        after, until = sorted(ends)
        found = (
            await count_events(
                services,
                caller(),
                CountEvents(
                    buckets=buckets,
                    by=by,
                    begin=f"pos:{after}",
                    end=f"pos:{until}",
                    tree=tree,
                    types=types,
                ),
            )
        ).view
        assert (found.after, found.until, found.counted_to) == (after, until, None)
        assert len(found.items) <= buckets
        wanted = events[after:until]
        if by == "time" and wanted:
            first, last = found.items[0].since, found.items[-1].until
            assert (first, last) == (
                wanted[0].envelope.recorded_at,
                wanted[-1].envelope.recorded_at,
            )
        positions = 0
        those: Sequence[RecordedEvent]
        for place, bucket in enumerate(found.items):
            if by == "time":
                assert bucket.since is not None
                assert bucket.until is not None
                those = [
                    one
                    for one in wanted
                    if (bucket.since < one.envelope.recorded_at or place == 0)
                    and one.envelope.recorded_at <= bucket.until
                ]
            else:
                assert bucket.last_position is not None
                those = wanted[positions : bucket.last_position - after]
            positions += len(those)
            if tree is None and not types:
                holds(bucket, those)
            those = [
                one
                for one in those
                if (tree is None or one.envelope.provenance.correlation == tree)
                and (not types or one.envelope.type in types)
            ]
            assert bucket.types == types_of(those)
            assert bucket.outcomes == outcomes_of(those)
        assert positions == len(wanted)

    @examples(80, suppress_health_check=list(HealthCheck))
    @given(
        st.tuples(
            st.integers(1, 500),
            st.sampled_from(["position", "time"]),
            st.tuples(st.integers(0, len(events)), st.integers(0, len(events))),
            st.sampled_from([None, ROOT]),
            st.sampled_from([(), ("RunEnded", "RunQueued")]),
        )
    )
    def everywhere(question: Any) -> None:
        asyncio.run_coroutine_threadsafe(everything_is_counted(*question), loop).result(30)

    await asyncio.to_thread(everywhere)


async def test_the_whole_log_is_for_who_sees_all_of_it(
    services: QueryServices, running: RunningLog
) -> None:
    await tell_everything(running)
    some = caller(patterns=("agent:main:main", "agent:main:other"))
    with pytest.raises(QueryError, match=r"pattern \*; give tree or runId") as refused:
        await count_events(services, some, CountEvents())
    assert refused.value.code == "not_permitted"
    with pytest.raises(QueryError, match="does not act for the session of that tree"):
        await count_events(services, some, CountEvents(tree="agent:main:stranger"))
    own = (await count_events(services, some, CountEvents(tree=ROOT))).view
    meant = [one for one in await running.events() if one.envelope.provenance.correlation == ROOT]
    assert sum(bucket.events for bucket in own.items) == len(meant) > 0
    assert (await list_timeline(services, some, ListTimeline())).view.buckets == []
    with pytest.raises(QueryError, match=r"pattern \*"):
        await list_timeline(services, some, ListTimeline(buckets=5))
    with pytest.raises(QueryError, match="needs a runId or a tree"):
        await count_events(services, caller(), CountEvents(actor="system"))
    with pytest.raises(QueryError, match="/query/from: is pos:5, behind the end, pos:3"):
        await count_events(services, caller(), CountEvents(begin="pos:5", end="pos:3"))
    with pytest.raises(QueryError, match="/query/to: a moment must be pos:18342"):
        await count_events(services, caller(), CountEvents(end="yesterday"))


async def test_an_empty_part_of_the_log_has_no_buckets(
    services: QueryServices, running: RunningLog
) -> None:
    await live_at_random(running, 1, rounds=2, at_once=2)
    for by in ("position", "time"):
        found = await count_events(
            services, caller(), CountEvents(by=by, begin="pos:2", end="pos:2")
        )
        assert found.view == HistogramView(by=by, after=2, until=2, counted_to=None, items=[])


async def _folds(running: RunningLog) -> list[dict[UUID, Run]]:
    """The runs after each number of events."""
    fold = Fold((), ())
    states: list[dict[UUID, Run]] = [{}]
    for recorded in await running.events():
        fold.apply(recorded.envelope.stream, recorded.event, recorded.envelope.stamp)
        states.append(dict(fold.runs))
    return states


def _stages(states: Sequence[dict[UUID, Run]], run_id: UUID, at: int) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for position in range(1, at + 1):
        run = states[position].get(run_id)
        if run is not None and (not found or found[-1][0] != run.stage):
            found.append((run.stage, position))
    return found


@pytest.mark.server
async def test_the_bars_of_a_part_are_the_runs_that_were_at_work_in_it(
    services: QueryServices, running: RunningLog
) -> None:
    await live_at_random(running, 2, rounds=15, at_once=3)
    states = await _folds(running)
    head = len(states) - 1
    await services.event_counts.count_up_to(head - 9)
    over = ("ended", "announced", "archived", "refused")
    for after in range(0, head, 7):
        for until in range(after, head + 1, 13):
            at = min(head, until + after % 5)
            meant = sorted(
                (
                    run
                    for run_id, run in states[at].items()
                    if run.created_position <= until
                    and (run_id not in states[after] or states[after][run_id].stage not in over)
                ),
                key=lambda run: -run.created_position,
            )
            found = (
                await list_timeline(
                    services,
                    caller(),
                    ListTimeline(
                        begin=f"pos:{after}", end=f"pos:{until}", at=f"pos:{at}", buckets=0
                    ),
                )
            ).view
            assert [one.run_id for one in found.items] == [run.run_id for run in meant]
            for bar, run in zip(found.items, meant, strict=True):
                assert (bar.stage, bar.status, bar.outcome, bar.depth) == (
                    run.stage,
                    status_of(run),
                    run.outcome,
                    run.depth,
                )
                assert (bar.label, bar.agent_id) == (run.label, run.agent_id)
                assert bar.parent_run_id == run.requester.run_id
                assert bar.child_session_key == run.child_session_key
                assert [(one.stage, one.position) for one in bar.stages] == _stages(
                    states, run.run_id, at
                )


@pytest.mark.server
async def test_pages_of_bars_have_no_seams_and_filters_hold(
    services: QueryServices, running: RunningLog
) -> None:
    await live_at_random(running, 4, rounds=15, at_once=3)
    head = await running.log.head()
    window: Any = {"begin": f"pos:{head // 3}", "end": f"pos:{head * 2 // 3}"}
    whole = (await list_timeline(services, caller(), ListTimeline(**window))).view
    assert whole.next_cursor is None
    assert sum(one.events for one in whole.buckets) == head * 2 // 3 - head // 3
    pages: list[Any] = []
    cursor = None
    while True:
        page = await list_timeline(
            services,
            caller(),
            ListTimeline(limit=2, cursor=cursor, buckets=0, **window),
        )
        pages += page.view.items
        cursor = page.view.next_cursor
        if cursor is None:
            break
    assert pages == whole.items
    for status in {one.status for one in whole.items}:
        narrow = await list_timeline(services, caller(), ListTimeline(statuses=(status,), **window))
        assert narrow.view.items == [one for one in whole.items if one.status == status]


async def test_a_moment_is_a_position_an_instant_and_what_is_next_to_it(
    services: QueryServices, running: RunningLog
) -> None:
    await live_at_random(running, 6, rounds=6, at_once=3)
    events = await running.events()
    middle = events[len(events) // 2].envelope
    found = (
        await get_moment(services, caller(), GetMoment(at=f"pos:{middle.position}", around=3))
    ).view
    assert (found.position, found.recorded_at) == (middle.position, middle.recorded_at)
    assert [one.position for one in found.before] == [middle.position - 2 + n for n in range(3)]
    assert [one.position for one in found.after] == [middle.position + 1 + n for n in range(3)]
    assert found.before[-1].type == middle.type
    later = (middle.recorded_at + timedelta(microseconds=1)).isoformat()
    at_instant = (await get_moment(services, caller(), GetMoment(at=later))).view
    assert at_instant.position >= middle.append_last
    assert at_instant.recorded_at == middle.recorded_at
    before_all = (await get_moment(services, caller(), GetMoment(at="pos:0"))).view
    assert (before_all.position, before_all.recorded_at, before_all.before) == (0, None, [])
    for_some = (await get_moment(services, caller(patterns=("agent:x:y",)), GetMoment())).view
    assert (for_some.before, for_some.after, for_some.config_revision) == ([], [], None)


def _walk(node: TreeNodeView) -> list[TreeNodeView]:
    return [node, *(one for child in node.children for one in _walk(child))]


async def _a_family(running: RunningLog) -> None:
    """Three levels; some are refused, some prepared, some over, and one goes on."""
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


async def _many_lives(running: RunningLog) -> None:
    await live_at_random(running, 8, rounds=15, at_once=3)


@pytest.mark.server
@pytest.mark.parametrize("live", [_a_family, _many_lives])
async def test_a_tree_is_the_fold_of_the_first_events_at_every_position(
    services: QueryServices, running: RunningLog, live: Callable[[RunningLog], Awaitable[None]]
) -> None:
    await live(running)
    fold = Fold((), ())
    states: list[dict[UUID, Run]] = [{}]
    for recorded in await running.events():
        envelope = recorded.envelope
        fold.apply(envelope.stream, recorded.event, envelope.stamp)
        states.append(dict(fold.runs))
        if ROOT not in fold.sessions:
            continue
        at = envelope.position
        found = (
            await get_session_tree(services, caller(), ROOT, GetSessionTree(at=f"pos:{at}"))
        ).view
        assert not found.cut
        assert (found.position, found.at) == (at, envelope.recorded_at)
        nodes = _walk(found.root)
        assert len(nodes) == found.nodes
        shown = {bar.run_id for node in nodes for bar in node.runs}
        assert shown == {
            run.run_id
            for run in fold.runs.values()
            if run.stage != "refused" and run.requester.root_session_key == ROOT
        }
        for node in nodes:
            below = {run_id for child in node.children for run_id in _ids(child)}
            assert below == {
                run.run_id
                for run in fold.runs.values()
                if run.stage != "refused" and run.requester.session_key == node.session_key
            }
            for bar in node.runs:
                run = fold.runs[bar.run_id]
                assert (bar.stage, bar.status, bar.outcome) == (
                    run.stage,
                    status_of(run),
                    run.outcome,
                )
            assert node.session_key is not None or len(node.runs) == 1
            session = fold.sessions.get(node.session_key or "")
            if session is not None:
                assert (node.depth, node.role, node.active_children, node.open) == (
                    session.depth,
                    session.role,
                    session.active_children,
                    session.stage == "open",
                )
                assert (node.session_id, node.agent_id) == (session.session_id, session.agent_id)
        if at % 5 == 0:
            await _own_runs_are_there(services, fold, at)
    bars = [bar for node in nodes for bar in node.runs]
    for bar in bars:
        assert [(one.stage, one.position) for one in bar.stages] == _stages(
            states, bar.run_id, len(states) - 1
        )


async def _own_runs_are_there(services: QueryServices, fold: Fold, at: int) -> None:
    for key, session in fold.sessions.items():
        found = (
            await get_session_tree(services, caller(), key, GetSessionTree(at=f"pos:{at}", depth=0))
        ).view
        own = [
            run.run_id
            for run in sorted(fold.runs.values(), key=lambda run: run.created_position)
            if run.child_session_key == key and run.stage != "refused"
        ]
        assert _ids(found.root) == (own if session.run_id is not None else [])
        assert found.cut == any(
            run.requester.session_key == key and run.stage != "refused"
            for run in fold.runs.values()
        )


def _ids(node: TreeNodeView) -> list[UUID]:
    return [bar.run_id for bar in node.runs]


@pytest.mark.server
async def test_a_tree_that_is_too_large_says_where_it_was_cut(
    services: QueryServices, running: RunningLog
) -> None:
    await _a_family(running)
    whole = (await get_session_tree(services, caller(), ROOT, GetSessionTree())).view
    deep = max(len(_walk(child)) for child in whole.root.children)
    assert deep > 1
    for limit in range(1, whole.nodes + 1):
        found = (await get_session_tree(services, caller(), ROOT, GetSessionTree(limit=limit))).view
        assert found.nodes == limit
        assert found.cut == (limit < whole.nodes)
        by_key = {node.session_key: node for node in _walk(whole.root)}
        for node in _walk(found.root):
            there = len(by_key[node.session_key].children)
            assert node.children_cut == (len(node.children) < there)
    flat = (await get_session_tree(services, caller(), ROOT, GetSessionTree(depth=1))).view
    assert flat.nodes == len(whole.root.children) + 1
    assert flat.cut
    child = next(one for one in whole.root.children if one.children)
    assert child.session_key is not None
    below = (await get_session_tree(services, caller(), child.session_key, GetSessionTree())).view
    assert below.root == child

"""Trees, bars and buckets of a generated history are what the events up to a position say."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from application.log.envelope import RecordedEvent
from application.ports.event_counts import BLOCK_EVENTS
from application.queries.timeline.bars import ListTimeline, list_timeline
from application.queries.timeline.histogram import CountEvents, EventBucketView, count_events
from application.queries.timeline.tree import GetSessionTree, get_session_tree
from domain.run.events import RunEnded, SpawnRefused
from domain.run.state import Run
from tests.support.builders.generated_pasts import (
    OVER,
    GeneratedPast,
    Past,
    instant,
    json_of,
    stages_of,
    status_of,
)
from tests.support.tiers import stride

pytestmark = [pytest.mark.server, pytest.mark.long]


def tree_run_of(now: Past, run: Run) -> dict[str, Any]:
    return {
        "runId": str(run.run_id),
        "stage": run.stage,
        "status": status_of(run),
        "outcome": run.outcome,
        "agentId": run.agent_id,
        "label": run.label,
        "respawnedFrom": str(run.respawn.run_id) if run.respawn is not None else None,
        "createdAt": instant(run.created_at),
        "stages": stages_of(now, run.run_id),
    }


Spawned = Mapping[str, Mapping[str, Sequence[Run]]]
"""By the session that asked for them, and by the one that they are of or are to have: the runs in
order of creation."""


def spawned(now: Past) -> Spawned:
    """All but those that were refused."""
    found: dict[str, dict[str, list[Run]]] = {}
    for run in now.by_creation:
        if run.stage != "refused":
            of_requester = found.setdefault(run.requester.session_key, {})
            of_requester.setdefault(run.child_session_key or str(run.run_id), []).append(run)
    return found


def node_of(now: Past, below: Spawned, key: str | None, own: Sequence[Run]) -> dict[str, Any]:
    session = now.sessions.get(key) if key is not None else None
    if session is not None:
        recorded: dict[str, Any] = {
            "sessionId": str(session.session_id),
            "agentId": session.agent_id,
            "depth": session.depth,
            "role": session.role,
            "open": session.stage == "open",
            "createdAt": instant(session.created_at),
            "activeChildren": session.active_children,
        }
    else:
        recorded = {
            "sessionId": None,
            "agentId": own[0].agent_id,
            "depth": own[0].depth,
            "role": None,
            "open": True,
            "createdAt": instant(own[0].created_at),
            "activeChildren": 0,
        }
    children = below.get(key, {}) if key is not None else {}
    return recorded | {
        "sessionKey": key,
        "runs": [tree_run_of(now, run) for run in own],
        "children": [
            node_of(now, below, runs[0].child_session_key, runs) for runs in children.values()
        ],
        "childrenCut": False,
        "refused": [
            tree_run_of(now, run)
            | {
                "rule": run.refusal.rule if run.refusal is not None else None,
                "childSessionKey": run.child_session_key,
            }
            for run in now.by_creation
            if run.stage == "refused" and run.requester.session_key == key
        ],
        "refusedCut": False,
    }


async def test_tree_is_the_fold_of_its_events(past: GeneratedPast) -> None:
    """The tree in which something was recorded, and trees of other sessions."""
    deep = 0
    for now in past.pasts[1 :: 2 * stride(2)]:
        root = now.head.envelope.provenance.correlation
        keys = list(now.sessions)[now.position % 29 :: 29]
        for key in {*keys, *([root] if root in now.sessions else ())}:
            session = now.sessions[key]
            deep += session.depth > 0
            below, own = spawned(now), list[Run]()
            if session.run_id is not None:
                own = [run for those in below.values() for run in those.get(key, ())]
            view = await past.view(get_session_tree, key, GetSessionTree(at=now.at))
            assert (view.position, view.at) == (now.position, now.head.envelope.recorded_at)
            assert json_of(view)["root"] == node_of(now, below, key, own)
            assert not view.cut
    assert deep > 20


def bar_of(now: Past, run: Run) -> dict[str, Any]:
    tree_run = tree_run_of(now, run)
    del tree_run["createdAt"]
    parent = run.requester.run_id
    return tree_run | {
        "depth": run.depth,
        "requesterSessionKey": run.requester.session_key,
        "parentRunId": str(parent) if parent else None,
        "childSessionKey": run.child_session_key,
    }


async def test_bars_are_the_runs_at_work_in_a_part(past: GeneratedPast) -> None:
    await past.services.event_counts.count_up_to(past.last // 2)
    die = random.Random(past.last)
    for now in past.some:
        until = die.randint(0, now.position)
        after = die.randint(max(0, until - die.choice((5, 60, past.last))), until)
        runs = now.by_creation
        root = die.choice([None, *(run.requester.root_session_key for run in runs[-9:])])
        before = past.pasts[after].runs
        meant = [
            run
            for run in reversed(runs)
            if run.created_position <= until
            and (run.run_id not in before or before[run.run_id].stage not in OVER)
            and root in (None, run.requester.root_session_key)
        ]
        found = await past.view(
            list_timeline,
            ListTimeline(
                tree=root,
                begin=f"pos:{after}",
                end=f"pos:{until}",
                at=now.at,
                buckets=0,
                limit=500,
            ),
        )
        assert found.next_cursor is None
        assert json_of(found)["items"] == [bar_of(now, run) for run in meant]


def kinds_of(events: Sequence[RecordedEvent]) -> tuple[dict[str, int], ...]:
    """How many there are of each type, of each outcome and of each rule."""
    return (
        dict(Counter(one.envelope.type for one in events)),
        dict(Counter(one.event.outcome for one in events if isinstance(one.event, RunEnded))),
        dict(Counter(one.event.rule for one in events if isinstance(one.event, SpawnRefused))),
    )


def is_of(bucket: EventBucketView, events: Sequence[RecordedEvent]) -> None:
    assert (bucket.types, bucket.outcomes, bucket.rules) == kinds_of(events)
    assert bucket.events == len(events)


async def test_each_bucket_counts_the_events_of_its_part(past: GeneratedPast) -> None:
    die = random.Random(past.last + 1)
    for number, now in enumerate(past.some):
        after = die.randint(0, now.position)
        events = past.events(after, now.position)
        root = now.head.envelope.provenance.correlation if number % 3 == 0 else None
        by: Any = die.choice(("position", "time"))
        found = await past.view(
            count_events,
            CountEvents(
                buckets=die.choice((1, 7, 40)),
                by=by,
                begin=f"pos:{after}",
                end=now.at,
                tree=root,
            ),
        )
        rest = list(events)
        for place, bucket in enumerate(found.items):
            if bucket.since is not None and bucket.until is not None:
                those = [
                    one
                    for one in rest
                    if one.envelope.recorded_at <= bucket.until
                    and (place == 0 or one.envelope.recorded_at > bucket.since)
                ]
            else:
                those = [
                    one for one in rest if one.envelope.position <= (bucket.last_position or 0)
                ]
                # Long ones begin where what was counted begins.
                is_long = len(events) // len(found.items) >= 2 * BLOCK_EVENTS
                off_max = BLOCK_EVENTS if is_long else 1
                assert abs(len(those) - len(events) / len(found.items)) < off_max
            assert those == rest[: len(those)]
            del rest[: len(those)]
            ends = [one.envelope for one in those[:1] + those[-1:]]
            assert [one.position for one in ends] == (
                [bucket.first_position, bucket.last_position] if ends else []
            )
            assert [one.recorded_at for one in ends] == (
                [bucket.first_at, bucket.last_at] if ends else []
            )
            is_of(
                bucket,
                [one for one in those if root in (None, one.envelope.provenance.correlation)],
            )
        assert rest == []


async def test_buckets_beside_bars_are_those_of_the_part(past: GeneratedPast) -> None:
    for now in list(past.some)[::4]:
        after = now.position * 2 // 3
        window: Any = {"begin": f"pos:{after}", "end": now.at}
        root = now.head.envelope.provenance.correlation
        for tree in (None, root):
            view = await past.view(list_timeline, ListTimeline(tree=tree, buckets=9, **window))
            counted = await past.view(
                count_events, CountEvents(buckets=9, by="time", tree=tree, **window)
            )
            assert view.buckets == counted.items
            events = [
                one
                for one in past.events(after, now.position)
                if tree in (None, one.envelope.provenance.correlation)
            ]
            assert sum((Counter(one.types) for one in view.buckets), Counter[str]()) == Counter(
                one.envelope.type for one in events
            )

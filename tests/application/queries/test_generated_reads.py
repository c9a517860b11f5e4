"""Reads of a generated history as of a position match the events up to it."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest

from application.log.envelope import RecordedEvent
from application.ports.event_counts import BLOCK_EVENTS
from application.queries.errors import QueryError
from application.queries.inbox import (
    LedgerState,
    ListAnnouncements,
    ListLedger,
    list_announcements,
    list_ledger,
)
from application.queries.lanes import ListLanes, list_lanes
from application.queries.operation import ReadAsOf
from application.queries.runs import GetRun, ListRunEvents, get_run, list_run_events
from application.queries.sessions import get_session
from application.queries.timeline.bars import ListTimeline, list_timeline
from application.queries.timeline.histogram import CountEvents, EventBucketView, count_events
from application.queries.timeline.moments import GetMoment, get_moment
from application.queries.timeline.tree import GetSessionTree, get_session_tree
from application.queries.views.session import session_record_view
from domain.context.thread_binding import read_origin
from domain.delivery.announcement import with_present_path
from domain.event_types import EVENT_TYPES
from domain.run.events import RunEnded, SpawnRefused
from domain.run.state import Run
from domain.session.state import Session
from domain.values.record import run_id_of, run_stream, session_key_of
from tests.support.builders.generated_pasts import (
    OVER,
    SEEDS,
    SETTLED,
    GeneratedPast,
    Past,
    Seed,
    instant,
    json_of,
    run_of,
    stages_of,
    status_of,
)
from tests.support.builders.reads_of_the_past import EVERYTHING
from tests.support.servers.running_log import running_on
from tests.support.tiers import stride

pytestmark = [pytest.mark.server, pytest.mark.long]

PREVIEW_CHARACTERS = 200

LEDGER_STATES: tuple[LedgerState | None, ...] = (
    None,
    "parked",
    "due",
    "delivered",
    "acknowledged",
)


def below(now: Past, key: str) -> Iterable[Run]:
    """Return the runs that a session requested, and those of the sessions below it."""
    keys = [key]
    for own in keys:
        for run in now.runs.values():
            if run.requester.session_key == own:
                yield run
                if run.child_session_key is not None and run.child_session_key not in keys:
                    keys.append(run.child_session_key)


@pytest.mark.nightly
async def test_histories_together_have_every_event(
    url_of: Callable[[Seed], str],
) -> None:
    types: set[str] = set()
    for seed in SEEDS:
        async with running_on(url_of(seed)) as running:
            types |= set(await running.types())
    assert types == {name for name, _ in EVENT_TYPES}


async def test_run_is_the_fold_of_its_events_up_to_a_position(past: GeneratedPast) -> None:
    """Reads the run of each position, and others, with their events."""
    for now in past.pasts[1 :: stride(3)]:
        own = run_id_of(now.head.envelope.stream)
        others = now.by_creation[now.position % 29 :: 29]
        for run in (*others, *([now.runs[own]] if own is not None else ())):
            found = await get_run(past.services, EVERYTHING, str(run.run_id), GetRun(at=now.at))
            assert found.position == now.position
            assert json_of(found.view) == run_of(past, now, run)
        if own is not None and own not in past.pasts[now.position - 1].runs:
            before = GetRun(at=f"pos:{now.position - 1}")
            with pytest.raises(QueryError, match="run not found"):
                await get_run(past.services, EVERYTHING, str(own), before)
        if others and now.position % 5 == 0:
            about = others[0].run_id
            events = await past.view(list_run_events, str(about), ListRunEvents(at=now.at))
            assert [item.position for item in events.items] == [
                event.envelope.position
                for event in past.events(0, now.position)
                if event.envelope.stream == run_stream(about)
            ]


def session_of(past: GeneratedPast, now: Past, session: Session) -> dict[str, Any]:
    """Return a session with the members of its view that come from elsewhere."""
    key = session.session_key
    own: list[Run] = []
    run_id = session.run_id
    while run_id is not None:
        own.append(now.runs[run_id])
        run_id = own[-1].continues
    newest = own[0] if own else None
    plan: Any = newest.plan if newest is not None else None
    queue = (newest.queue or ()) if newest is not None else ()
    members = ("modelProvider", "model", "modelSource", "thinking", "thinkingSource")
    names = ("model_provider", "model", "model_source", "thinking", "thinking_source")
    stages = [run.stage for run in below(now, key)]
    return {
        **json_of(session_record_view(session)),
        "maxChildren": past.subagents(now)["maxChildrenPerAgent"],
        "pendingDescendants": sum(stage not in SETTLED for stage in stages),
        "runningDescendants": sum(stage not in OVER for stage in stages),
        "runs": [
            {
                "runId": str(run.run_id),
                "label": run.label,
                "stage": run.stage,
                "agentId": run.agent_id,
            }
            for run in reversed(now.by_creation)
            if run.requester.session_key == key
        ],
        "ownRuns": [
            {
                "runId": str(run.run_id),
                "stage": run.stage,
                "continues": str(run.continues) if run.continues else None,
            }
            for run in own
        ],
        **{
            member: getattr(plan, name) if plan is not None else None
            for member, name in zip(members, names, strict=True)
        },
        "queue": [
            {
                "runId": str(run.run_id),
                "messagePreview": past.texts[run.message.id][:PREVIEW_CHARACTERS],
                "by": run.by,
                "cause": run.cause,
                "queuedAt": instant(run.queued_at),
            }
            for run in queue
        ],
    }


async def test_session_is_the_fold_with_its_runs_and_configuration(
    past: GeneratedPast,
) -> None:
    for now in past.some:
        own = session_key_of(now.head.envelope.stream)
        sessions = list(now.sessions)
        keys = {*sessions[now.position % 31 :: 31], *([own] if own is not None else ())}
        for key in keys:
            found = await past.view(get_session, key, ReadAsOf(at=now.at))
            assert json_of(found) == session_of(past, now, now.sessions[key])


async def test_lanes_have_who_ran_and_who_waited_for_what(
    past: GeneratedPast,
) -> None:
    crowded = 0
    for now in past.pasts[:: stride(3)]:
        width = past.subagents(now)["maxConcurrent"] if now.revision else None
        in_line = [run for run in now.runs.values() if run.stage in ("queued", "started")]
        in_line.sort(key=lambda run: run.queued_position or 0)
        expected: list[Any] = []
        for lane, depth in sorted({(str(run.lane), run.lane_depth or 0) for run in in_line}):
            here = [run for run in in_line if (run.lane, run.lane_depth) == (lane, depth)]
            running = [run for run in here if run.holder is not None]
            queued = [run for run in here if run.holder is None]
            waits_for = "to be claimed" if width and len(running) < width else "a slot"
            expected.append(
                {
                    "lane": lane,
                    "depth": depth,
                    "width": width,
                    "running": [
                        {"runId": str(run.run_id), "label": run.label, "holder": run.holder}
                        for run in running
                    ],
                    "queued": [
                        {
                            "runId": str(run.run_id),
                            "label": run.label,
                            "place": place,
                            "waitsFor": waits_for,
                        }
                        for place, run in enumerate(queued, 1)
                    ],
                }
            )
        crowded += len(in_line) > 3
        found = await past.view(list_lanes, ListLanes(at=now.at))
        assert json_of(found)["items"] == expected
    assert crowded > past.last / stride(3) / 4


def announcement_of(past: GeneratedPast, run: Run) -> dict[str, Any]:
    inbox = run.inbox
    assert inbox is not None
    text = past.texts[inbox.text.id] if inbox.text is not None else None
    sealed = run.transcript.path if run.transcript is not None else None
    target = run.inbox_target
    origin = read_origin(past.texts[target.id]) if target is not None else None
    return {
        "id": str(run.run_id),
        "runId": str(run.run_id),
        "requester": run.requester.display_key,
        "childSessionKey": run.child_session_key,
        "label": run.label,
        "position": inbox.position,
        "createdAt": instant(inbox.created_at),
        "status": inbox.status,
        "state": "delivered" if inbox.acknowledged_at is None else "acknowledged",
        "text": with_present_path(text, sealed, run.transcript_path) if text else None,
        "origin": dict(origin) if origin else None,
        "dedupeKey": inbox.dedupe_key,
        "acknowledgedAt": instant(inbox.acknowledged_at),
        "deliveries": [
            {
                "webhook": effect.name,
                "state": "delivered" if effect.phase == "done" else effect.phase,
                "attempts": effect.attempts,
                "statusCode": effect.status_code,
                "error": past.texts[effect.error.id] if effect.error is not None else None,
                "nextAttemptAt": instant(effect.due_at),
                "parkedFor": effect.reason,
            }
            for effect in run.effects_of("webhook")
        ],
    }


def announced(now: Past) -> list[Run]:
    """Return the runs with an inbox entry, in order of the inbox."""
    found = [
        (run.inbox.position, run)
        for run in now.runs.values()
        if run.inbox is not None and run.inbox.disposition == "inbox"
    ]
    return [run for _, run in sorted(found, key=lambda pair: pair[0])]


async def test_inbox_and_ledger_have_what_had_been_announced(past: GeneratedPast) -> None:
    met: set[str | None] = set()
    for number, now in enumerate(past.some):
        runs = announced(now)
        if runs:
            key = runs[now.position % len(runs)].requester.session_key
            own = [run for run in runs if run.requester.session_key == key]
            found = await past.view(list_announcements, key, ListAnnouncements(at=now.at))
            assert json_of(found)["items"] == [announcement_of(past, run) for run in own]
            last = own[-1].inbox
            assert last is not None
            behind = ListAnnouncements(at=now.at, after=last.position - 1)
            items = (await past.view(list_announcements, key, behind)).items
            assert [item.run_id for item in items] == [own[-1].run_id]
        state = LEDGER_STATES[number % len(LEDGER_STATES)]
        meant = [
            document
            for run in runs
            for document in [announcement_of(past, run)]
            if state is None
            or (state == document["state"])
            or (state == "parked" and run.is_parked)
            or (
                state == "due"
                and any(delivery["state"] == "due" for delivery in document["deliveries"])
            )
        ]
        listed: list[Any] = []
        after: int | None = 0
        while after is not None:
            query = ListLedger(state=state, at=now.at, after=after, limit=20)
            page = await past.view(list_ledger, query)
            listed += json_of(page)["items"]
            after = page.next_after
        assert listed == meant
        met |= {state} if meant else set()
    assert {None, "delivered", "acknowledged"} <= met


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


def tree_row_of(past: GeneratedPast, now: Past, run: Run) -> dict[str, Any]:
    error = run.refusal.text if run.refusal is not None else run.error
    return tree_run_of(now, run) | {
        "taskPreview": past.texts[run.task.id][:200],
        "error": past.texts[error.id][:200] if error is not None else None,
    }


def usage_of_row(run: Run) -> dict[str, Any]:
    return {
        "inputTokens": run.usage.input_tokens if run.usage is not None else None,
        "outputTokens": run.usage.output_tokens if run.usage is not None else None,
        "estimatedCostUsd": cost_of([run]),
    }


def cost_of(runs: Sequence[Run]) -> float | None:
    usages = [run.usage for run in runs if run.usage is not None]
    costs = [model.cost_usd for usage in usages for model in usage.models]
    priced = [Decimal(str(cost)) for cost in costs if cost is not None]
    return float(sum(priced)) if priced else None


def usage_of(runs: Sequence[Run]) -> dict[str, Any]:
    usages = [run.usage for run in runs if run.usage is not None]
    models = [(model.model or "", model.cost_usd) for usage in usages for model in usage.models]
    return {
        "runs": len(runs),
        "inputTokens": sum(usage.input_tokens for usage in usages),
        "outputTokens": sum(usage.output_tokens for usage in usages),
        "estimatedCostUsd": cost_of(runs),
        "models": len({name for name, _ in models}),
        "unpricedModels": len({name for name, cost in models if cost is None}),
    }


def runs_below(below: "Spawned", key: str | None, own: Sequence[Run]) -> list[Run]:
    children = below.get(key, {}) if key is not None else {}
    deeper = [runs_below(below, runs[0].child_session_key, runs) for runs in children.values()]
    return [*own, *(run for runs in deeper for run in runs)]


Spawned = Mapping[str, Mapping[str, Sequence[Run]]]

"""Runs in order of creation, by requester and by their own session."""


def spawned(now: Past) -> Spawned:
    """Return all runs except refused ones."""
    found: dict[str, dict[str, list[Run]]] = {}
    for run in now.by_creation:
        if run.stage != "refused":
            of_requester = found.setdefault(run.requester.session_key, {})
            of_requester.setdefault(run.child_session_key or str(run.run_id), []).append(run)
    return found


def node_of(
    past: GeneratedPast, now: Past, below: Spawned, key: str | None, own: Sequence[Run]
) -> dict[str, Any]:
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
        "own": usage_of(own),
        "total": usage_of(runs_below(below, key, own)),
        "runs": [tree_row_of(past, now, run) | usage_of_row(run) for run in own],
        "children": [
            node_of(past, now, below, runs[0].child_session_key, runs) for runs in children.values()
        ],
        "childrenCut": False,
        "refused": [
            tree_row_of(past, now, run)
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
    """Reads the tree of each event, and trees of other sessions."""
    deep = 0
    for now in past.pasts[1 :: 2 * stride(2)]:
        root = now.head.envelope.provenance.correlation
        others = list(now.sessions)[now.position % 29 :: 29] if now.position % 7 == 1 else []
        for key in {*others, *([root] if root in now.sessions else ())}:
            session = now.sessions[key]
            deep += session.depth > 0
            below, own = spawned(now), list[Run]()
            if session.run_id is not None:
                own = [run for those in below.values() for run in those.get(key, ())]
            view = await past.view(get_session_tree, key, GetSessionTree(at=now.at))
            assert (view.position, view.at) == (now.position, now.head.envelope.recorded_at)
            assert json_of(view)["root"] == node_of(past, now, below, key, own)
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
    """Return the number of events by type, outcome and rule."""
    return (
        dict(Counter(event.envelope.type for event in events)),
        dict(Counter(event.event.outcome for event in events if isinstance(event.event, RunEnded))),
        dict(
            Counter(event.event.rule for event in events if isinstance(event.event, SpawnRefused))
        ),
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
                    event
                    for event in rest
                    if event.envelope.recorded_at <= bucket.until
                    and (place == 0 or event.envelope.recorded_at > bucket.since)
                ]
            else:
                those = [
                    event
                    for event in rest
                    if event.envelope.position <= (bucket.last_position or 0)
                ]
                # Long buckets begin at the start of a block of counted events.
                is_long = len(events) // len(found.items) >= 2 * BLOCK_EVENTS
                off_max = BLOCK_EVENTS if is_long else 1
                assert abs(len(those) - len(events) / len(found.items)) < off_max
            assert those == rest[: len(those)]
            del rest[: len(those)]
            ends = [event.envelope for event in those[:1] + those[-1:]]
            assert [end.position for end in ends] == (
                [bucket.first_position, bucket.last_position] if ends else []
            )
            assert [end.recorded_at for end in ends] == (
                [bucket.first_at, bucket.last_at] if ends else []
            )
            is_of(
                bucket,
                [event for event in those if root in (None, event.envelope.provenance.correlation)],
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
                event
                for event in past.events(after, now.position)
                if tree in (None, event.envelope.provenance.correlation)
            ]
            assert sum(
                (Counter(bucket.types) for bucket in view.buckets), Counter[str]()
            ) == Counter(event.envelope.type for event in events)


async def test_moment_has_its_event_and_neighbors(past: GeneratedPast) -> None:
    for now in past.some:
        view = await past.view(get_moment, GetMoment(at=now.at, around=2))
        near = range(now.position - 1, now.position + 3)
        assert [item.position for item in (*view.before, *view.after)] == [
            position for position in near if 0 < position <= past.last
        ]
        assert view.before[-1].type == now.head.envelope.type
        assert view.recorded_at == now.head.envelope.recorded_at
        assert view.config_revision == now.revision

"""Each read as of a position of a generated history is the fold of the events up to there."""

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

import pytest

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
from application.queries.runs import (
    GetRun,
    ListRunEvents,
    ListRuns,
    get_run,
    list_run_events,
    list_runs,
)
from application.queries.sessions import (
    get_session,
)
from application.queries.views.run import RunSummary, summary_texts, view_of_run
from application.queries.views.session import session_record_view
from domain.context.thread_binding import read_origin
from domain.delivery.announcement import with_present_path
from domain.event_types import EVENT_TYPES
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
    """The runs that a session asked for, and those of the sessions below it."""
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
    """The run of each position, and others there; they are asked for with their events."""
    for now in past.pasts[1 :: stride(3)]:
        own = run_id_of(now.head.envelope.stream)
        others = now.by_creation[now.position % 29 :: 29]
        for run in (*others, *([now.runs[own]] if own is not None else ())):
            found = await get_run(past.services, EVERYTHING, str(run.run_id), GetRun(at=now.at))
            assert found.position == now.position
            assert json_of(found.view) == run_of(past, now, run)
        if own is not None and own not in past.pasts[now.position - 1].runs:
            before = GetRun(at=f"pos:{now.position - 1}")
            with pytest.raises(QueryError, match="no such run"):
                await get_run(past.services, EVERYTHING, str(own), before)
        if others and now.position % 5 == 0:
            about = others[0].run_id
            events = await past.view(list_run_events, str(about), ListRunEvents(at=now.at))
            assert [one.position for one in events.items] == [
                one.envelope.position
                for one in past.events(0, now.position)
                if one.envelope.stream == run_stream(about)
            ]


async def test_registry_has_all_runs_as_they_were(
    past: GeneratedPast,
) -> None:
    previews = {id: text[:PREVIEW_CHARACTERS] for id, text in past.texts.items()}

    def shown_of(run: Run) -> dict[UUID, str]:
        # Why an undo failed is a text that a list leaves out.
        return {ref.id: previews[ref.id] for ref in summary_texts(run) if ref.id in previews}

    for now in list(past.some)[::5]:
        stages: Any = now.stages
        expected = [
            json_of(view_of_run(RunSummary, run, shown_of(run), stages[run.run_id]))
            for run in reversed(now.by_creation)
        ]
        found: list[Any] = []
        cursor = None
        while True:
            page = await past.view(list_runs, ListRuns(at=now.at, limit=40, cursor=cursor))
            found += json_of(page)["items"]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert found == expected


def session_of(past: GeneratedPast, now: Past, session: Session) -> dict[str, Any]:
    """A session with all that its view has from elsewhere."""
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
                "runId": str(one.run_id),
                "messagePreview": past.texts[one.message.id][:PREVIEW_CHARACTERS],
                "by": one.by,
                "cause": one.cause,
                "queuedAt": instant(one.queued_at),
            }
            for one in queue
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
                "webhook": one.name,
                "state": "delivered" if one.phase == "done" else one.phase,
                "attempts": one.attempts,
                "statusCode": one.status_code,
                "error": past.texts[one.error.id] if one.error is not None else None,
                "nextAttemptAt": instant(one.due_at),
                "parkedFor": one.reason,
            }
            for one in run.effects_of("webhook")
        ],
    }


def announced(now: Past) -> list[Run]:
    """Those of which there is something in an inbox, in the order in which it stands there."""
    found = [
        (run.inbox.position, run)
        for run in now.runs.values()
        if run.inbox is not None and run.inbox.disposition == "inbox"
    ]
    return [run for _, run in sorted(found, key=lambda one: one[0])]


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
            assert [one.run_id for one in items] == [own[-1].run_id]
        state = LEDGER_STATES[number % len(LEDGER_STATES)]
        meant = [
            document
            for run in runs
            for document in [announcement_of(past, run)]
            if state is None
            or (state == document["state"])
            or (state == "parked" and run.is_parked)
            or (state == "due" and any(one["state"] == "due" for one in document["deliveries"]))
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

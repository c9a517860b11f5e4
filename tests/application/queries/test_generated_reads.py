"""Each read as of a position of a generated history is the fold of the events up to there."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

import orjson
import pytest

from application.queries.agents import ListAgents, list_agents
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
    get_run_shared_context,
    get_session,
    get_shared_context,
)
from application.queries.views.run import RunSummary, summary_texts, view_of_run
from application.queries.views.session import session_record_view
from domain.context.thread_binding import read_origin
from domain.delivery.announcement import with_present_path
from domain.event_types import EVENT_TYPES
from domain.run.events import RunStarted
from domain.run.state import Run
from domain.session.events import SharedContextChanged, SharedContextInherited
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
async def test_together_the_histories_have_all_that_can_be_recorded(
    url_of: Callable[[Seed], str],
) -> None:
    types: set[str] = set()
    for seed in SEEDS:
        async with running_on(url_of(seed)) as running:
            types |= set(await running.types())
    assert types == {name for name, _ in EVENT_TYPES}


async def test_a_run_at_every_position_is_the_fold_of_its_events_up_to_there(
    past: GeneratedPast,
) -> None:
    for now in past.pasts[1 :: stride(3)]:
        run_id = run_id_of(now.head.envelope.stream)
        if run_id is None:
            continue
        at = now.at
        found = await get_run(past.services, EVERYTHING, str(run_id), GetRun(at=at))
        assert found.position == now.position
        assert json_of(found.view) == run_of(past, now, now.runs[run_id])
        if run_id not in past.pasts[now.position - 1].runs:
            with pytest.raises(QueryError, match="no such run"):
                await get_run(
                    past.services, EVERYTHING, str(run_id), GetRun(at=f"pos:{now.position - 1}")
                )


async def test_a_run_reads_so_at_positions_that_others_made_and_with_its_events(
    past: GeneratedPast,
) -> None:
    for now in past.some:
        runs = now.by_creation
        for run in runs[now.position % 29 :: 29]:
            about, at = str(run.run_id), now.at
            view = await past.view(get_run, about, GetRun(at=at))
            assert json_of(view) == run_of(past, now, run)
        for run in runs[now.position % 41 :: 41]:
            events = await past.view(list_run_events, str(run.run_id), ListRunEvents(at=now.at))
            assert [one.position for one in events.items] == [
                one.envelope.position
                for one in past.events(0, now.position)
                if one.envelope.stream == run_stream(run.run_id)
            ]


async def test_the_registry_as_it_was_has_all_the_runs_there_were_as_they_were(
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


async def test_a_session_as_it_was_is_the_fold_with_the_runs_and_the_configuration_of_then(
    past: GeneratedPast,
) -> None:
    for now in past.some:
        own = session_key_of(now.head.envelope.stream)
        sessions = list(now.sessions)
        keys = {*sessions[now.position % 31 :: 31], *([own] if own is not None else ())}
        for key in keys:
            found = await past.view(get_session, key, ReadAsOf(at=now.at))
            assert json_of(found) == session_of(past, now, now.sessions[key])


async def test_lanes_at_every_position_have_who_ran_and_who_waited_for_what(
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
    """What stands in an inbox."""
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


async def test_an_inbox_as_it_was_has_what_had_been_announced_to_it(past: GeneratedPast) -> None:
    told = 0
    for now in past.some:
        runs = announced(now)
        if not runs:
            continue
        key = runs[now.position % len(runs)].requester.session_key
        own = [run for run in runs if run.requester.session_key == key]
        at = now.at
        found = await past.view(list_announcements, key, ListAnnouncements(at=at))
        assert json_of(found)["items"] == [announcement_of(past, run) for run in own]
        last = own[-1].inbox
        assert last is not None
        behind = await past.view(
            list_announcements, key, ListAnnouncements(at=at, after=last.position - 1)
        )
        assert [one.run_id for one in behind.items] == [own[-1].run_id]
        told += len(own)
    assert told > past.last / 10


async def test_the_ledger_as_it_was_has_all_announcements_by_what_had_become_of_them(
    past: GeneratedPast,
) -> None:
    met: set[str | None] = set()
    for number, now in enumerate(past.some):
        state = LEDGER_STATES[number % len(LEDGER_STATES)]
        meant = [
            document
            for run in announced(now)
            for document in [announcement_of(past, run)]
            if state is None
            or (state == document["state"])
            or (state == "parked" and run.is_parked)
            or (state == "due" and any(one["state"] == "due" for one in document["deliveries"]))
        ]
        found: list[Any] = []
        after: int | None = 0
        while after is not None:
            page = await past.view(
                list_ledger, ListLedger(state=state, at=now.at, after=after, limit=20)
            )
            found += json_of(page)["items"]
            after = page.next_after
        assert found == meant
        met |= {state} if meant else set()
    assert {None, "delivered", "acknowledged"} <= met


class Shared:
    """What a session shares, by a walk through all that was written."""

    def __init__(self) -> None:
        self.inherited: dict[str, dict[str, Any]] = {}
        self.own: dict[str, dict[str, Any] | None] = {}
        self.version = 0
        self.history: list[dict[str, Any]] = []
        self.started: list[dict[str, Any]] = []

    @property
    def keys(self) -> dict[str, dict[str, Any]]:
        """By their names; what was taken away is not there."""
        found = {**self.inherited, **self.own}
        return {key: one for key, one in found.items() if one is not None}


def shared_by(past: GeneratedPast, now: Past) -> Mapping[str, Shared]:
    """By the keys of the sessions."""
    found: dict[str, Shared] = {key: Shared() for key in now.sessions}
    for one in past.events(0, now.position):
        envelope, event = one.envelope, one.event
        key = session_key_of(envelope.stream)
        if key is None or not isinstance(event, SharedContextChanged | SharedContextInherited):
            continue
        shared = found[key]
        shared.version = envelope.position
        keys: list[str] = []
        if isinstance(event, SharedContextInherited):
            shared.inherited = {
                known.key: {
                    "value": known.value,
                    "kind": known.kind,
                    "sessionKey": known.session_key,
                    "position": known.position,
                    "runId": str(known.run_id) if known.run_id else None,
                    "by": known.by,
                }
                for known in event.keys
            }
            keys, cause, by = [known.key for known in event.keys], "inherited", None
            versions = [
                change["position"]
                for change in found[event.from_session].history
                if change["position"] <= event.at_position
            ]
            found[event.from_session].started.append(
                {
                    "runId": str(event.run_id),
                    "position": event.at_position,
                    "version": versions[-1] if versions else 0,
                    "label": now.runs[event.run_id].label,
                }
            )
        else:
            keys, cause, by = [change.key for change in event.changes], event.cause, event.by
            for change in event.changes:
                shared.own[change.key] = (
                    {
                        "value": change.value,
                        "kind": "literal",
                        "sessionKey": key,
                        "position": envelope.position,
                        "runId": str(event.run_id) if event.run_id else None,
                        "by": event.by,
                    }
                    if change.value is not None
                    else None
                )
        shared.history.append(
            {
                "position": envelope.position,
                "recordedAt": instant(envelope.recorded_at),
                "cause": cause,
                "by": by,
                "runId": str(event.run_id) if event.run_id else None,
                "keys": keys,
            }
        )
    return found


async def test_what_a_family_shared_is_what_had_been_written_and_not_taken_away(
    past: GeneratedPast,
) -> None:
    shared_some = 0
    for now in past.some:
        by_key = shared_by(past, now)
        sharing = [key for key, shared in by_key.items() if shared.version]
        asked = [*list(by_key)[now.position % 40 :: 40], *sharing]
        for key in asked:
            shared = by_key[key]
            view = await past.view(get_shared_context, key, ReadAsOf(at=now.at))
            keys = shared.keys
            shared_some += bool(keys)
            assert json_of(view) == {
                "sessionKey": key,
                "version": shared.version,
                "position": now.position,
                "sizes": {name: one["value"].bytes for name, one in keys.items()},
                "values": {
                    name: orjson.loads(past.texts[one["value"].id]) for name, one in keys.items()
                },
                "erased": [],
                "sources": {
                    name: {member: value for member, value in one.items() if member != "value"}
                    for name, one in keys.items()
                },
                "history": shared.history,
                "startedWith": shared.started if shared.version else [],
            }
    is_shared = any(isinstance(one.head.event, SharedContextChanged) for one in past.pasts[1:])
    assert bool(shared_some) == is_shared


async def test_what_a_run_was_given_is_what_its_start_says_from_there_on(
    past: GeneratedPast,
) -> None:
    starts: dict[UUID, RunStarted] = {}
    for now in past.pasts[1:]:
        run_id, event = run_id_of(now.head.envelope.stream), now.head.event
        if not isinstance(event, RunStarted) or run_id is None:
            continue
        starts[run_id] = event
        before = f"pos:{now.position - 1}"
        with pytest.raises(QueryError, match="has not started"):
            await get_run_shared_context(
                past.services, EVERYTHING, str(run_id), ReadAsOf(at=before)
            )
        for at in (now.position, past.last):
            view = await past.view(get_run_shared_context, str(run_id), ReadAsOf(at=f"pos:{at}"))
            given = event.shared_context
            assert json_of(view)["values"] == {
                one.key: orjson.loads(past.texts[one.value.id])
                for one in given
                if one.value is not None
            }
            assert (view.position, list(view.sources)) == (
                event.shared_context_position,
                [one.key for one in given],
            )
    assert len(starts) > 20


async def test_agents_that_might_be_spawned_are_those_of_the_configuration_in_force(
    past: GeneratedPast,
) -> None:
    for now in list(past.some)[::3]:
        for key in list(now.sessions)[now.position % 31 :: 31]:
            view = await past.view(list_agents, ListAgents(requester=key, at=now.at))
            own = now.sessions[key].agent_id
            agents = {one["id"]: one for one in past.configurations[now.revision]["agents"]["list"]}
            allowed = {*past.subagents(now)["allowAgents"]}
            if not agents[own].get("subagents", {}).get("requireAgentId"):
                allowed.add(own)
            assert {one.id for one in view.agents} == allowed
            assert {one.id for one in view.agents if one.configured} == allowed & agents.keys()
            assert (view.requester, view.allow_any) == (own, False)

"""A search finds the same positions as a look at every position."""

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from application.log.envelope import RecordedEvent
from application.queries.access import Caller
from application.queries.errors import QueryError
from application.queries.runs import GetRun, get_run
from application.queries.search import find, pages
from application.queries.search.condition import parse_condition
from application.queries.search.counts import NAMES
from application.queries.search.fields import (
    FIELDS_OF_A_RUN,
    MAX_CHILDREN,
    RUN_FIELDS,
    SESSION_FIELDS,
)
from application.queries.search.find import BreakpointView, FindEvents, SearchView, find_events
from application.queries.views.run import status_of
from application.queries.views.session import SessionRecordView
from domain.configuration.configuration import Configuration
from domain.run.events import SpawnRefused
from domain.run.state import Run
from domain.spawn.stages import RULE_NAMES
from domain.values.record import run_id_of
from tests.support.builders.generated_pasts import (
    EVENTS,
    SEEDS,
    GeneratedPast,
    Past,
    folded,
    json_of,
    past_of,
)
from tests.support.builders.query_services import activate, caller
from tests.support.builders.storytelling import ROOT
from tests.support.servers.running_log import RunningLog
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.server
EVERYTHING = caller("read", "content")
QUESTIONS = 21
SIGNS = (">", ">=", "<", "<=", "=", "!=")
of_everything = pytest.mark.parametrize("past", ["everything"], indirect=True)
of_histories = pytest.mark.parametrize(
    "past", nightly_but([*SEEDS, "everything"], [SEEDS[-1], "everything"]), indirect=True
)


@pytest.fixture
async def told_anew(running: RunningLog, tmp_path: Path) -> GeneratedPast:
    """Return a copy of the log of the mark `told`, for a test that changes it."""
    return await past_of(running, tmp_path)


async def set_cap(past: GeneratedPast, folder: Path, cap: int, **more: int) -> int:
    """Activate a configuration with this cap. Return its revision."""
    values = {"maxChildrenPerAgent": cap, **more}
    return await activate(past.services.work.configurations, folder, values)


def numbers_at(now: Past, question: FindEvents) -> dict[str, int]:
    runs = [run for run in now.runs.values() if in_scope(run, question)]
    statuses = Counter[str](status_of(run) for run in runs)
    if question.rule is not None:
        statuses["refused"] = sum(
            run.refusal is not None and run.refusal.rule == question.rule for run in runs
        )
    places = [
        session.active_children
        for key, session in now.sessions.items()
        if question.session in (None, key) and question.tree in (None, session.root_session_key)
    ]
    counted = {
        "spawned": len(runs),
        "archived": sum(run.stage == "archived" for run in runs),
        "active": sum(places),
        "config": now.revision,
        "position": now.position,
    }
    return {name: counted.get(name, statuses.get(name, 0)) for name in NAMES}


def in_scope(run: Run, question: FindEvents) -> bool:
    return (
        question.run_id in (None, str(run.run_id))
        and question.session in (None, run.requester.session_key)
        and question.tree in (None, run.requester.root_session_key)
        and question.agent_id in (None, run.agent_id)
    )


def changed(question: FindEvents, **more: Any) -> FindEvents:
    return question.model_copy(update=more)


def edges(past: GeneratedPast, question: FindEvents, first: int, last: int) -> list[int]:
    """Return where a condition begins to hold, by a look at every position."""
    assert question.when is not None
    condition = parse_condition(question.when, NAMES)
    holds = [condition.holds(numbers_at(now, question)) for now in past.pasts[first : last + 1]]
    return [
        first + place
        for place, (before, now) in enumerate(pairwise([False, *holds]))
        if now and not before
    ]


async def search(
    past: GeneratedPast,
    question: FindEvents,
    *,
    limit: int = 1,
    all_of_it: bool = False,
    events_read_max: int = 20_000,
) -> tuple[list[BreakpointView], SearchView]:
    items: list[BreakpointView] = []
    cursor = None
    while True:
        with pytest.MonkeyPatch.context() as limits:
            limits.setattr(find, "EVENTS_READ_MAX", events_read_max)
            request = changed(question, limit=limit, cursor=cursor)
            view = (await find_events(past.services, EVERYTHING, request)).view
        assert len(view.items) <= limit
        items += view.items
        cursor = view.next_cursor
        if cursor is None or (items and not all_of_it):
            return items, view


def random_condition(chosen: random.Random, names: Sequence[str], last: int) -> str:
    def compared() -> str:
        name = chosen.choice(names)
        high = {"position": last, "spawned": 40, "config": 3}.get(name, 6)
        comparand = str(chosen.randint(0, high)) if chosen.random() < 0.9 else chosen.choice(names)
        return f"{name} {chosen.choice(SIGNS)} {comparand}"

    text = compared()
    for _ in range(chosen.choice((0, 0, 1, 1, 2))):
        text = f"{text} {chosen.choice(('and', 'or'))} {compared()}"
        if chosen.random() < 0.3:
            text = f"not ({text})"
    return text


def random_question(chosen: random.Random, past: GeneratedPast, number: int) -> FindEvents:
    runs = list(past.pasts[-1].runs.values())
    run = chosen.choice(runs)
    rules = {run.refusal.rule for run in runs if run.refusal is not None}
    scopes: list[dict[str, str]] = [
        {},
        {"tree": run.requester.root_session_key},
        {"session": run.requester.session_key},
        {"run_id": str(run.run_id)},
        {"agent_id": run.agent_id or "main"},
        {"agent_id": run.agent_id or "main", "session": run.requester.session_key},
        {"rule": chosen.choice(sorted({"mode", *rules} & {*RULE_NAMES}))},
    ]
    scope = scopes[number % len(scopes)]
    names = sorted(NAMES)
    if "rule" in scope:
        names = ["config", "position", "refused"]
    elif "run_id" in scope or "agent_id" in scope:
        names.remove("active")
    return FindEvents(when=random_condition(chosen, names, past.last), **scope)


@pytest.fixture(params=nightly_but([7, 1_000], [7]))
def page_events(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    length = int(request.param)
    monkeypatch.setattr(pages, "PAGE_EVENTS", length)
    monkeypatch.setattr(pages, "POSITIONS_AT_ONCE", length * 10)
    return length


@of_histories
async def test_condition_is_found_at_its_edges(past: GeneratedPast, page_events: int) -> None:
    """Checks all edges, the first one, and those of a part, with different pages."""
    chosen, found_some = random.Random(page_events), 0
    for number in range(QUESTIONS):
        question = random_question(chosen, past, number)
        first = chosen.choice((0, 0, chosen.randint(0, past.last)))
        last = chosen.choice((past.last, chosen.randint(first, past.last)))
        question = changed(question, begin=f"pos:{first}", end=f"pos:{last}")
        expected = edges(past, question, first, last)
        found_some += bool(expected)
        few = chosen.choice((20_000, 40, 150))
        found_event, view = await search(past, question, events_read_max=few)
        assert [item.position for item in found_event] == expected[:1], question
        assert view.method != "bisection" or len(expected) <= 1
        limit = chosen.choice((1, 3, 100))
        every, _ = await search(past, question, limit=limit, all_of_it=True, events_read_max=few)
        assert [item.position for item in every] == expected, question
        for item in every:
            names = parse_condition(question.when or "", NAMES).names
            assert item.as_of == f"pos:{item.position}"
            assert item.already_held is (item.position == first)
            for shown, position in ((item.after, item.position), (item.before, item.position - 1)):
                if position >= first:
                    true = numbers_at(past.pasts[position], question)
                    assert shown == {name: true[name] for name in names}
    assert found_some > QUESTIONS / 4


async def require_changes(
    past: GeneratedPast,
    question: FindEvents,
    values_at: Callable[[Past], Mapping[Any, object]],
    owner_of: Callable[[RecordedEvent], object],
) -> None:
    """Assert that a search finds where a field changes, and where it becomes this value."""
    assert question.field is not None
    changes: list[tuple[int, object, object]] = []
    for before, now in pairwise(past.pasts):
        owner = owner_of(now.head)
        old, new = values_at(before).get(owner), values_at(now).get(owner)
        if old != new:
            changes.append((now.position, old, new))
    every = changed(question, changes=True)
    found, _ = await search(past, every, limit=100, all_of_it=True, events_read_max=100)
    shown = [
        (item.position, item.before[question.field], item.after[question.field]) for item in found
    ]
    assert shown == changes
    if not changes:
        return
    position, _, value = changes[len(changes) // 2]
    text = json.dumps(value) if value is None or isinstance(value, bool) else str(value)
    becomes = [at for at, _, new in changes if new == value and type(new) is type(value)]
    # A value may be JSON.
    for word in {text, json.dumps(value) if isinstance(value, str) else text}:
        found_event, _ = await search(past, changed(question, becomes=word))
        assert found_event[0].position == becomes[0]
    for begin in (position - 1, position):
        since, _ = await search(past, changed(question, becomes=text, begin=f"pos:{begin}"))
        # Without a session, values that held already are not reported.
        held = question.session is not None and begin > 0 and value is not None
        is_held = held and any(
            old == value and type(old) is type(value)
            for old in values_at(past.pasts[begin]).values()
        )
        later = [(at, False) for at in becomes if at > begin]
        expected = [(begin, True)] if is_held else later[:1]
        assert [(item.position, item.already_held) for item in since] == expected, (question, begin)


@of_histories
async def test_field_of_run_is_found_where_it_changes(
    past: GeneratedPast, page_events: int
) -> None:
    names = [*RUN_FIELDS]
    if past.last >= EVENTS - 1:
        names = random.Random(past.last + page_events).sample(names, 8)
    for name in names:

        def runs_at(now: Past, name: str = name) -> dict[Any, object]:
            return {run_id: RUN_FIELDS[name](run) for run_id, run in now.runs.items()}

        await require_changes(
            past, FindEvents(field=name), runs_at, lambda event: run_id_of(event.envelope.stream)
        )


@pytest.mark.told("everything")
async def test_field_of_session_is_found_where_it_changes(
    told_anew: GeneratedPast, running: RunningLog, tmp_path: Path
) -> None:
    default = Configuration().subagent_defaults.max_children_per_agent
    caps = dict.fromkeys(range(told_anew.pasts[-1].revision + 1), default)
    for cap in (3, 8, 8, 6, 8):
        revision = await set_cap(told_anew, tmp_path, cap, maxConcurrent=len(caps))
        caps[revision] = cap
    past = replace(told_anew, pasts=folded(await running.events()))
    for key in [ROOT, *list(past.pasts[-1].sessions)[::5]]:
        for name in (*SESSION_FIELDS, MAX_CHILDREN):

            def session_at(now: Past, key: str = key, name: str = name) -> dict[Any, object]:
                session = now.sessions.get(key)
                if session is None:
                    return {}
                is_cap = name == MAX_CHILDREN
                return {key: caps[now.revision] if is_cap else SESSION_FIELDS[name](session)}

            question = FindEvents(field=name, session=key)
            await require_changes(past, question, session_at, lambda _, key=key: key)  # type: ignore[misc]


@of_everything
async def test_every_plain_field_is_searched(past: GeneratedPast) -> None:
    texts = {"task", "taskBytes", "resultText", "error", "requesterOrigin"}
    at = f"pos:{past.last}"
    for run in past.pasts[-1].runs.values():
        shown = json_of(
            (await get_run(past.services, EVERYTHING, str(run.run_id), GetRun(at=at))).view
        )
        assert [*shown] == [*FIELDS_OF_A_RUN]
        plain = {name for name, value in shown.items() if isinstance(value, (bool, int, str))}
        assert plain - texts <= {*RUN_FIELDS}
        searched = {name: value_of(run) for name, value_of in RUN_FIELDS.items() if name in shown}
        assert searched == {name: shown[name] for name in searched}
    lists = {"assertions", "activeRuns", "unreadReports"}
    recorded = {model_field.alias for model_field in SessionRecordView.model_fields.values()}
    assert recorded - lists == {*SESSION_FIELDS}


async def test_refusals_are_found_in_every_scope(past: GeneratedPast) -> None:
    runs = past.pasts[-1].runs
    refused = [
        (event.envelope.position, event.event.rule, runs[event.envelope.provenance.run_id])
        for event in past.events(0, past.last)
        if isinstance(event.event, SpawnRefused) and event.envelope.provenance.run_id is not None
    ]
    _, rule, run = refused[-1]
    for scope in (
        {},
        {"run_id": str(run.run_id)},
        {"session": run.requester.session_key},
        {"tree": run.requester.root_session_key},
        {"agent_id": run.agent_id},
    ):
        question = FindEvents(rule=rule, **scope)
        found, _ = await search(past, question, limit=7, all_of_it=True, events_read_max=5)
        assert [item.position for item in found] == [
            at for at, by, event in refused if by == rule and in_scope(event, question)
        ]
        assert all(
            event.event is not None and event.event.type == "SpawnRefused" for event in found
        )


async def test_position_is_found_by_bisection(past: GeneratedPast) -> None:
    found, view = await search(past, FindEvents(when=f"position >= {EVENTS // 3}"))
    assert [item.position for item in found] == [EVENTS // 3]
    assert found[0].event is not None
    assert (view.method, view.events_read) == ("bisection", 0)
    assert view.reads <= 2 * EVENTS.bit_length()


@pytest.mark.told("everything")
async def test_erased_texts_hinder_no_search(told_anew: GeneratedPast, running: RunningLog) -> None:
    question = FindEvents(when="running > 1 or refused > 2")
    before, _ = await search(told_anew, question)
    for table in ("contents", "content_keys"):
        await running.ask(f"DELETE FROM {table}")
    assert (await search(told_anew, question))[0] == before
    for field in ("outcome", "stage"):
        assert (await search(told_anew, FindEvents(field=field, changes=True)))[0]
    await search(told_anew, FindEvents(field="maxChildren", changes=True, session=ROOT))


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "give exactly one of"),
    ({"when": "running > 1", "field": "stage"}, "give exactly one of"),
    ({"when": "running >"}, "/query/when: column 10"),
    ({"field": "stage"}, "either becomes"),
    ({"field": "stage", "becomes": "ended", "changes": True}, "either becomes"),
    ({"when": "running > 1", "changes": True}, "/query/becomes: requires field"),
    ({"field": "outcom", "changes": True}, 'did you mean "outcome"'),
    (
        {"field": "tools", "changes": True},
        "tools is not searchable: .* the fields are runId, stage,",
    ),
    ({"field": "outcome", "becomes": "eror"}, 'no outcome "eror"; did you mean "error"'),
    ({"field": "yielded", "becomes": "yes"}, "there are true, false, null"),
    ({"field": "stage", "becomes": "opn", "session": ROOT}, 'did you mean "open"'),
    ({"types": ("SpawnRefusd",)}, 'did you mean "SpawnRefused"'),
    ({"rule": "active_childen"}, 'did you mean "active_children"'),
    ({"rule": "mode", "types": ("RunEnded",)}, "only applies to refusals"),
    ({"rule": "mode", "when": "running > 1"}, "the number refused"),
    ({"when": "active > 1", "agent_id": "main"}, "restrict it by session"),
    (
        {"when": "running > 1", "tree": ROOT, "session": ROOT},
        "name at most one run, session or tree",
    ),
    ({"when": "running > 1", "begin": "pos:3", "end": "pos:2"}, "is after the end"),
    ({"when": "running > 1", "session": "agent:main:nobody"}, 'no session "agent:main:nobody"'),
)


@of_everything
@pytest.mark.parametrize(("wrong", "words"), WRONG)
async def test_wrong_question_is_refused(
    past: GeneratedPast, wrong: dict[str, Any], words: str
) -> None:
    with pytest.raises(QueryError, match=words):
        await find_events(past.services, EVERYTHING, FindEvents(**wrong))


@pytest.mark.told("everything")
async def test_caller_finds_what_it_may_see(told_anew: GeneratedPast, tmp_path: Path) -> None:
    async def found(by: Caller, question: FindEvents) -> Sequence[BreakpointView]:
        return (await find_events(told_anew.services, by, question)).view.items

    question, own = FindEvents(when="spawned > 0"), caller("read", session=ROOT)
    with pytest.raises(QueryError, match="whole log"):
        await found(own, question)
    assert await found(own, changed(question, tree=ROOT))
    for who in (EVERYTHING, own):
        (event,) = await found(who, FindEvents(when="config >= 2", tree=ROOT))
        assert (event.after, event.event) == ({"config": 2}, None)
    await set_cap(told_anew, tmp_path, 9)
    mine = FindEvents(
        field="maxChildren", changes=True, session=ROOT, begin=f"pos:{told_anew.last}"
    )
    for who, is_shown in ((EVERYTHING, True), (own, False)):
        (event,) = await found(who, mine)
        assert (event.event is not None) == is_shown
    run_id = str(next(iter(told_anew.pasts[-1].runs)))
    for scope in ({"tree": ROOT}, {"session": ROOT}, {"run_id": run_id}):
        with pytest.raises(QueryError):
            await found(caller("read", session="agent:main:stranger"), changed(question, **scope))
    # A session that is named by its id is refused without its key.
    session = await told_anew.services.work.registry.session(ROOT)
    assert session is not None
    by_id = FindEvents(field="stage", changes=True, session=str(session.session_id))
    with pytest.raises(QueryError, match='acts for "agent:main:stranger", not') as refused:
        await found(caller("read", session="agent:main:stranger"), by_id)
    assert ROOT not in str(refused.value)


@of_everything
async def test_cursor_is_of_one_question(past: GeneratedPast) -> None:
    question = FindEvents(when="spawned > 1")
    cursor = (await find_events(past.services, EVERYTHING, question)).view.next_cursor
    assert cursor is not None
    with pytest.raises(QueryError, match="another query"):
        await find_events(past.services, EVERYTHING, FindEvents(when="spawned > 2", cursor=cursor))
    for broken in ("x", cursor[:-4], "\u00e9", cursor + "AAAA", "W10", "bnVsbA"):
        with pytest.raises(QueryError, match="cursor"):
            await find_events(past.services, EVERYTHING, changed(question, cursor=broken))

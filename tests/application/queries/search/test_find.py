"""Since when something is so: what a search finds is what a look at every position finds."""

import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from application.log.envelope import RecordedEvent
from application.projections.fold import Fold
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
from application.queries.search.find import (
    BreakpointView,
    FindEvents,
    SearchView,
    find_events,
)
from application.queries.services import QueryServices
from application.queries.views.run import status_of
from application.queries.views.session import SessionRecordView
from domain.configuration.configuration import Configuration
from domain.event_types import ConfigurationActivated
from domain.run.events import SpawnRefused
from domain.run.state import Run
from domain.session.state import Session
from domain.spawn.stages import RULE_NAMES
from domain.values.record import run_id_of
from tests.support.builders.generated_pasts import EVENTS, SEEDS, generated_url
from tests.support.builders.query_services import activate, caller, services_on
from tests.support.builders.storytelling import ROOT
from tests.support.builders.whole_story import tell_everything
from tests.support.servers.databases import Databases
from tests.support.servers.running_log import RunningLog, running_on
from tests.support.servers.server_configurations import ServerConfigurations
from tests.support.tiers import nightly_but, stride

pytestmark = pytest.mark.server
EVERYTHING = caller("read", "content")
SIGNS = (">", ">=", "<", "<=", "=", "!=")


@dataclass(frozen=True)
class Moment:
    """All that is so at one position, and the event that was recorded there."""

    position: int
    recorded: RecordedEvent | None
    runs: Mapping[Any, Run]
    sessions: Mapping[str, Session]
    revision: int
    rules: Mapping[str, int]


# Without a `repr`: asyncio asks a task that is done for that of its result.
@dataclass(frozen=True, repr=False)
class History:
    """A log, and how things were at each of its positions, from 0 on."""

    services: QueryServices
    moments: Sequence[Moment]

    @property
    def last(self) -> int:
        return len(self.moments) - 1


async def history_of(running: RunningLog, services: QueryServices) -> History:
    """By folding everything."""
    fold, revision, rules = Fold((), ()), 0, Counter[str]()
    moments = [Moment(0, None, {}, {}, 0, {})]
    for recorded in await running.events():
        fold.apply(recorded.envelope.stream, recorded.event, recorded.envelope.stamp)
        if isinstance(recorded.event, ConfigurationActivated):
            revision = recorded.event.revision
        if isinstance(recorded.event, SpawnRefused):
            rules[recorded.event.rule] += 1
        moments.append(
            Moment(
                recorded.envelope.position,
                recorded,
                dict(fold.runs),
                dict(fold.sessions),
                revision,
                dict(rules),
            )
        )
    return History(services, moments)


@pytest.fixture(
    scope="module", params=nightly_but(SEEDS, SEEDS[-1:]), ids=lambda seed: str(seed.number)
)
def url_of_the_past(databases: Databases, request: pytest.FixtureRequest) -> Iterator[str]:
    url = generated_url(databases, request.param)
    yield url
    databases.drop(url)


@pytest.fixture
async def generated(url_of_the_past: str, tmp_path: Path) -> AsyncIterator[History]:
    async with running_on(url_of_the_past) as running:
        yield await history_of(running, await services_on(running, tmp_path))


@pytest.fixture(scope="module")
async def told(
    databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[History]:
    """Everything that can be recorded, for tests that write nothing."""
    url = databases.create()
    async with running_on(url) as running:
        yield await tell(running, tmp_path_factory.mktemp("told"))
    databases.drop(url)


@pytest.fixture
async def told_anew(running: RunningLog, tmp_path: Path) -> History:
    return await tell(running, tmp_path)


async def tell(running: RunningLog, folder: Path) -> History:
    services = await services_on(running, folder)
    await tell_everything(running)
    return await history_of(running, services)


def numbers_at(moment: Moment, question: FindEvents) -> dict[str, int]:
    """Every number, counted anew."""
    runs = [run for run in moment.runs.values() if in_scope(run, question)]
    statuses = Counter[str](status_of(run) for run in runs)
    if question.rule is not None:
        statuses["refused"] = sum(
            run.refusal is not None and run.refusal.rule == question.rule for run in runs
        )
    places = [
        session.active_children
        for key, session in moment.sessions.items()
        if question.session in (None, key) and question.tree in (None, session.root_session_key)
    ]
    counted = {
        "spawned": len(runs),
        "archived": sum(run.stage == "archived" for run in runs),
        "active": sum(places),
        "config": moment.revision,
        "position": moment.position,
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
    """The question with other parameters."""
    return question.model_copy(update=more)


def edges(history: History, question: FindEvents, first: int, last: int) -> list[int]:
    """Where a condition begins to hold, by a look at every position."""
    assert question.when is not None
    condition = parse_condition(question.when, NAMES)
    found, held = [], False
    for moment in history.moments[first : last + 1]:
        before, held = held, condition.holds(numbers_at(moment, question))
        if held and not before:
            found.append(moment.position)
    return found


async def search(
    history: History,
    question: FindEvents,
    *,
    limit: int = 1,
    all_of_it: bool = False,
    events_read_max: int = 20_000,
) -> tuple[list[BreakpointView], SearchView]:
    """What is found by as many requests as it takes."""
    items: list[BreakpointView] = []
    cursor = None
    while True:
        with pytest.MonkeyPatch.context() as limits:
            limits.setattr(find, "EVENTS_READ_MAX", events_read_max)
            answer = await find_events(
                history.services, EVERYTHING, changed(question, limit=limit, cursor=cursor)
            )
        assert len(answer.view.items) <= limit
        items += answer.view.items
        cursor = answer.view.next_cursor
        if cursor is None or (items and not all_of_it):
            return items, answer.view


def random_condition(chosen: random.Random, names: Sequence[str], last: int) -> str:
    def compared() -> str:
        name = chosen.choice(names)
        high = {"position": last, "spawned": 40, "config": 3}.get(name, 6)
        other = str(chosen.randint(0, high)) if chosen.random() < 0.9 else chosen.choice(names)
        return f"{name} {chosen.choice(SIGNS)} {other}"

    text = compared()
    for _ in range(chosen.choice((0, 0, 1, 1, 2))):
        text = f"{text} {chosen.choice(('and', 'or'))} {compared()}"
        if chosen.random() < 0.3:
            text = f"not ({text})"
    return text


def random_question(chosen: random.Random, history: History, number: int) -> FindEvents:
    """A condition over one of the scopes, in turn, and over a range."""
    newest = history.moments[-1]
    run = chosen.choice(list(newest.runs.values()))
    scopes: list[dict[str, str]] = [
        {},
        {"tree": run.requester.root_session_key},
        {"session": run.requester.session_key},
        {"run_id": str(run.run_id)},
        {"agent_id": run.agent_id or "main"},
        {"agent_id": run.agent_id or "main", "session": run.requester.session_key},
        {"rule": chosen.choice(sorted({"mode", *newest.rules} & {*RULE_NAMES}))},
    ]
    scope = scopes[number % len(scopes)]
    names = sorted(NAMES)
    if "rule" in scope:
        names = ["config", "position", "refused"]
    elif "run_id" in scope or "agent_id" in scope:
        names.remove("active")
    when = random_condition(chosen, names, history.last)
    return FindEvents(when=when, **scope)


async def agrees(history: History, seed: int, questions: int) -> None:
    """All edges, the first one, and those of a part, each however the search is cut to requests."""
    chosen = random.Random(seed)
    found_some = 0
    for number in range(questions):
        question = random_question(chosen, history, number)
        first = chosen.choice((0, 0, chosen.randint(0, history.last)))
        last = chosen.choice((history.last, chosen.randint(first, history.last)))
        question = changed(question, begin=f"pos:{first}", end=f"pos:{last}")
        expected = edges(history, question, first, last)
        found_some += bool(expected)
        few = chosen.choice((20_000, 40, 150))
        one, view = await search(history, question, events_read_max=few)
        assert [item.position for item in one] == expected[:1], question
        if view.method == "bisection":
            assert len(expected) <= 1
        every, _ = await search(
            history, question, limit=chosen.choice((1, 3, 100)), all_of_it=True, events_read_max=few
        )
        assert [item.position for item in every] == expected, question
        for item in every:
            names = parse_condition(question.when or "", NAMES).names
            true = numbers_at(history.moments[item.position], question)
            assert item.after == {name: true[name] for name in names}
            assert item.as_of == f"pos:{item.position}"
            assert item.already_held is (item.position == first)
            if not item.already_held:
                before = numbers_at(history.moments[item.position - 1], question)
                assert item.before == {name: before[name] for name in names}
    assert found_some > questions / 4


@pytest.fixture(params=nightly_but([7, 1_000], [7]))
def page_events(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Short pages and long ones."""
    length = int(request.param)
    monkeypatch.setattr(pages, "PAGE_EVENTS", length)
    monkeypatch.setattr(pages, "POSITIONS_AT_ONCE", length * 10)
    return length


async def test_a_condition_is_found_where_a_look_at_every_position_finds_it(
    generated: History, page_events: int
) -> None:
    await agrees(generated, page_events, 14)


async def test_it_is_so_too_where_everything_happens(told: History, page_events: int) -> None:
    await agrees(told, page_events + 1, 35 // stride(2))


async def test_a_field_is_found_where_its_value_becomes_another(
    told: History, page_events: int
) -> None:
    await finds_fields(told, [*RUN_FIELDS])
    assert page_events


async def test_it_is_so_too_in_a_generated_history(generated: History) -> None:
    chosen = random.Random(str(next(iter(generated.moments[-1].runs))))
    await finds_fields(generated, chosen.sample([*RUN_FIELDS], 8))


async def finds_fields(history: History, names: Sequence[str]) -> None:
    for name in names:
        value_of = RUN_FIELDS[name]

        def runs_at(
            moment: Moment, value_of: Callable[[Run], object] = value_of
        ) -> dict[Any, object]:
            return {run_id: value_of(run) for run_id, run in moment.runs.items()}

        await finds_changes(
            history,
            FindEvents(field=name),
            runs_at,
            lambda recorded: run_id_of(recorded.envelope.stream),
        )


async def test_every_field_of_a_run_is_searched_or_refused_by_its_name(told: History) -> None:
    newest = list(told.moments[-1].runs.values())
    for run in newest[:5]:
        view = await get_run(told.services, EVERYTHING, str(run.run_id), GetRun())
        shown = json.loads(view.view.json_bytes())
        assert [*shown] == [*FIELDS_OF_A_RUN]
        for name, value_of in RUN_FIELDS.items():
            if name in shown:
                assert value_of(run) == shown[name], name
    plain = {
        name
        for run in newest
        for name, value in json.loads(
            (await get_run(told.services, EVERYTHING, str(run.run_id), GetRun())).view.json_bytes()
        ).items()
        if isinstance(value, (bool, int, str))
    }
    texts = {"task", "taskBytes", "resultText", "error", "requesterOrigin"}
    # A run at work has it as of now only.
    now_only = {"transcriptEntries"}
    assert plain - texts - now_only <= {*RUN_FIELDS}


async def test_a_value_may_be_written_as_json_writes_it(told: History) -> None:
    for word in ("success", '"success"'):
        question = FindEvents(field="outcome", becomes=word)
        (one,), _ = await search(told, question)
        assert one.after == {"outcome": "success"}


def test_every_plain_field_of_a_session_is_searched() -> None:
    lists = {"assertions", "activeRuns", "unreadReports"}
    recorded = {one.alias for one in SessionRecordView.model_fields.values()}
    assert recorded - lists == {*SESSION_FIELDS}


async def test_a_field_of_a_session_is_found_where_its_value_becomes_another(
    running: RunningLog, tmp_path: Path
) -> None:
    services = await services_on(running, tmp_path)
    configurations = services.work.configurations
    assert isinstance(configurations, ServerConfigurations)
    caps: dict[int, int] = {1: Configuration().subagent_defaults.max_children_per_agent}

    async def change_cap(cap: int) -> None:
        values = {"maxChildrenPerAgent": cap, "maxConcurrent": len(caps) + 1}
        caps[await activate(configurations, tmp_path, values)] = cap

    await change_cap(3)
    await tell_everything(running)
    # Revisions are part of everything, and say nothing of it.
    told_of = (await running.types()).count(ConfigurationActivated.__name__)
    caps |= dict.fromkeys(range(len(caps) + 1, told_of + 1), caps[1])
    for cap in (3, 8, 8, 6, 8):
        await change_cap(cap)
    told = await history_of(running, services)

    def value_of(name: str, session: Session, revision: int) -> object:
        return caps[revision] if name == MAX_CHILDREN else SESSION_FIELDS[name](session)

    for key in [ROOT, *list(told.moments[-1].sessions)[::5]]:
        for name in (*SESSION_FIELDS, MAX_CHILDREN):

            def session_at(moment: Moment, key: str = key, name: str = name) -> dict[Any, object]:
                session = moment.sessions.get(key)
                return {key: value_of(name, session, moment.revision)} if session else {}

            await finds_changes(
                told,
                FindEvents(field=name, session=key),
                session_at,
                lambda _, key=key: key,  # type: ignore[misc]
            )


async def finds_changes(
    history: History,
    question: FindEvents,
    values_at: Callable[[Moment], Mapping[Any, object]],
    owner_of: Callable[[RecordedEvent], object],
) -> None:
    changes: list[tuple[int, object, object]] = []
    for before, moment in zip(history.moments, history.moments[1:], strict=False):
        assert moment.recorded is not None
        owner = owner_of(moment.recorded)
        old, new = values_at(before).get(owner), values_at(moment).get(owner)
        if old != new:
            changes.append((moment.position, old, new))
    found, _ = await search(
        history,
        changed(question, changes=True),
        limit=100,
        all_of_it=True,
        events_read_max=100,
    )
    assert question.field is not None
    shown = [(one.position, one.before[question.field], one.after[question.field]) for one in found]
    assert shown == changes
    if not changes:
        return
    position, _, value = changes[len(changes) // 2]
    text = json.dumps(value) if value is None or isinstance(value, bool) else str(value)
    first = next(place for place, _, new in changes if new == value and type(new) is type(value))
    one, _ = await search(history, changed(question, becomes=text))
    assert one[0].position == first
    for begin in (position - 1, position):
        since = changed(question, becomes=text, begin=f"pos:{begin}")
        told = [(one.position, one.already_held) for one in (await search(history, since))[0]]
        held = [
            old == value and type(old) is type(value) and value is not None
            for old in values_at(history.moments[begin]).values()
        ]
        # Of all runs nobody asks which of them had the value already.
        is_held = question.session is not None and begin > 0 and any(held)
        later = (
            (place, False)
            for place, _, new in changes
            if place > begin and new == value and type(new) is type(value)
        )
        assert told == ([(begin, True)] if is_held else [*later][:1]), (question, begin)


async def test_events_are_found_by_type_and_rule_in_every_scope(generated: History) -> None:
    newest = generated.moments[-1]
    recorded = [one.recorded for one in generated.moments if one.recorded is not None]
    refused = [one for one in recorded if isinstance(one.event, SpawnRefused)]
    some = refused[-1]
    assert isinstance(some.event, SpawnRefused)
    assert some.envelope.provenance.run_id is not None
    run = newest.runs[some.envelope.provenance.run_id]
    rule = some.event.rule
    for scope in (
        {},
        {"run_id": str(run.run_id)},
        {"session": run.requester.session_key},
        {"tree": run.requester.root_session_key},
        {"agent_id": run.agent_id},
    ):
        question = FindEvents(rule=rule, **scope)
        expected = [
            one.envelope.position
            for one in refused
            if isinstance(one.event, SpawnRefused)
            and one.event.rule == rule
            and in_scope(newest.runs[one.envelope.provenance.run_id], question)
        ]
        found, _ = await search(generated, question, limit=7, all_of_it=True, events_read_max=5)
        assert [one.position for one in found] == expected
        assert all(one.event is not None and one.event.type == "SpawnRefused" for one in found)


async def test_revisions_and_positions_are_found_by_halving(generated: History) -> None:
    found, view = await search(generated, FindEvents(when=f"position >= {EVENTS // 3}"))
    assert [one.position for one in found] == [EVENTS // 3]
    assert found[0].event is not None
    assert (view.method, view.events_read) == ("bisection", 0)
    assert view.reads <= 2 * EVENTS.bit_length()


async def test_the_places_of_a_session_are_those_of_the_configuration_in_force(
    running: RunningLog, tmp_path: Path
) -> None:
    services = await services_on(running, tmp_path)
    configurations = services.work.configurations
    assert isinstance(configurations, ServerConfigurations)
    family = await tell_everything(running)
    await activate(configurations, tmp_path, {"maxChildrenPerAgent": 1})
    await activate(configurations, tmp_path, {"maxChildrenPerAgent": 1, "maxConcurrent": 3})
    position = await activate(configurations, tmp_path, {"maxChildrenPerAgent": 9})
    history = await history_of(running, services)
    question = FindEvents(field="maxChildren", becomes="1", session=family.root)
    found, _ = await search(history, question, limit=100, all_of_it=True)
    assert [one.after for one in found] == [{"maxChildren": 1}]
    (nine,), _ = await search(history, changed(question, becomes="9"))
    assert nine.event is not None
    assert nine.event.payload["revision"] == position


async def test_texts_that_were_erased_hinder_no_search(
    told_anew: History, running: RunningLog
) -> None:
    question = FindEvents(when="running > 1 or refused > 2")
    before, _ = await search(told_anew, question)
    await running.ask("DELETE FROM contents")
    await running.ask("DELETE FROM content_keys")
    assert (await search(told_anew, question))[0] == before
    for field in ("outcome", "stage"):
        assert (await search(told_anew, FindEvents(field=field, changes=True)))[0]
    await search(told_anew, FindEvents(field="maxChildren", changes=True, session=ROOT))


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "give one of"),
    ({"when": "running > 1", "field": "stage"}, "give one of"),
    ({"when": "running >"}, "/query/when: column 10"),
    ({"field": "stage"}, "becomes=VALUE"),
    ({"field": "stage", "becomes": "ended", "changes": True}, "becomes=VALUE"),
    ({"when": "running > 1", "changes": True}, "belongs to a field"),
    ({"field": "outcom", "changes": True}, 'did you mean "outcome"'),
    ({"field": "tools", "changes": True}, "tools is not searched: .* there are runId, stage,"),
    ({"field": "outcome", "becomes": "eror"}, 'no outcome "eror"; did you mean "error"'),
    ({"field": "yielded", "becomes": "yes"}, "there are true, false, null"),
    ({"field": "stage", "becomes": "opn", "session": ROOT}, 'did you mean "open"'),
    ({"types": ("SpawnRefusd",)}, 'did you mean "SpawnRefused"'),
    ({"rule": "active_childen"}, 'did you mean "active_children"'),
    ({"rule": "mode", "types": ("RunEnded",)}, "belongs to refusals"),
    ({"rule": "mode", "when": "running > 1"}, "refused alone"),
    ({"when": "active > 1", "agent_id": "main"}, "narrow it by session"),
    ({"when": "running > 1", "tree": ROOT, "session": ROOT}, "one of runId"),
    ({"when": "running > 1", "begin": "pos:3", "end": "pos:2"}, "is behind the end"),
    ({"when": "running > 1", "session": "agent:main:nobody"}, 'no session "agent:main:nobody"'),
)


async def test_what_is_no_question_is_refused_with_what_to_do(told: History) -> None:
    for wrong, words in WRONG:
        with pytest.raises(QueryError, match=words):
            await find_events(told.services, EVERYTHING, FindEvents(**wrong))


async def test_a_caller_finds_what_it_may_see(told_anew: History, tmp_path: Path) -> None:
    question = FindEvents(when="spawned > 0")
    own = caller("read", session=ROOT)
    with pytest.raises(QueryError, match="whole log"):
        await find_events(told_anew.services, own, question)
    assert (await find_events(told_anew.services, own, changed(question, tree=ROOT))).view.items
    revisions = FindEvents(when="config >= 2", tree=ROOT)
    for who, shown in ((EVERYTHING, False), (own, False)):
        (one,) = (await find_events(told_anew.services, who, revisions)).view.items
        assert (one.after, one.event is not None) == ({"config": 2}, shown)
    configurations = told_anew.services.work.configurations
    assert isinstance(configurations, ServerConfigurations)
    await activate(configurations, tmp_path, {"maxChildrenPerAgent": 9})
    mine = FindEvents(
        field="maxChildren", changes=True, session=ROOT, begin=f"pos:{told_anew.last}"
    )
    for who, shown in ((EVERYTHING, True), (own, False)):
        (one,) = (await find_events(told_anew.services, who, mine)).view.items
        assert (one.event is not None) == shown
    stranger = caller("read", session="agent:main:stranger")
    run_id = str(next(iter(told_anew.moments[-1].runs)))
    for narrowed in (
        changed(question, tree=ROOT),
        changed(question, session=ROOT),
        changed(question, run_id=run_id),
    ):
        with pytest.raises(QueryError):
            await find_events(told_anew.services, stranger, narrowed)


async def test_a_cursor_is_of_one_question_on_one_log(told: History) -> None:
    question = FindEvents(when="spawned > 1")
    answer = await find_events(told.services, EVERYTHING, question)
    cursor = answer.view.next_cursor
    assert cursor is not None
    with pytest.raises(QueryError, match="another question"):
        await find_events(told.services, EVERYTHING, FindEvents(when="spawned > 2", cursor=cursor))
    for broken in ("x", cursor[:-4], "\u00e9", cursor + "AAAA", "W10", "bnVsbA"):
        with pytest.raises(QueryError, match="cursor"):
            await find_events(told.services, EVERYTHING, changed(question, cursor=broken))

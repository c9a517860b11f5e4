"""Finds since when something is so: the first positions at which a condition holds, a field becomes
a value, or an event was recorded."""

import asyncio
import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal
from uuid import UUID

import orjson
from pydantic import Field, JsonValue

from application.log.envelope import RecordedEvent
from application.queries.access import Caller, require_whole_log
from application.queries.as_of import resolve_as_of
from application.queries.command import COMMAND_ITEMS_MAX, Column, Command, Option
from application.queries.errors import QueryError, invalid_value
from application.queries.events import TYPES, EventsOfRuns
from application.queries.operation import LogPart, Page, Read, operation
from application.queries.paging import fingerprint
from application.queries.revisions import revision_at
from application.queries.run_filter import TEXT_CHARACTERS_MAX
from application.queries.runs import readable_run
from application.queries.search.condition import (
    POSITION,
    Condition,
    ConditionError,
    parse_condition,
)
from application.queries.search.counts import ACTIVE, CONFIG, GROWING, NAMES, RunCounts, RunScope
from application.queries.search.fields import (
    FIELDS_OF_A_RUN,
    MAX_CHILDREN,
    RUN_FIELDS,
    RUN_VALUES,
    SESSION_FIELDS,
    SESSION_VALUES,
    field_value,
    is_value,
    word_of,
)
from application.queries.search.finders import (
    Breakpoint,
    BreakpointFinder,
    ConditionFinder,
    EventFinder,
    FieldFinder,
    SessionFieldFinder,
)
from application.queries.search.pages import SearchedEvents
from application.queries.search.states import RegistryStates
from application.queries.services import QueryServices
from application.queries.session_reference import resolve_root, resolve_session_key, unknown_session
from application.queries.views.event import EventView, event_view
from application.queries.views.view import Answer, View
from domain.configuration.problems import nearest_word
from domain.event_types import ConfigurationActivated
from domain.spawn.stages import RULE_NAMES
from domain.values.moments import MOMENT_CHARACTERS_MAX, MOMENT_FORMS
from domain.values.record import run_stream

BREAKPOINTS_MAX = 100
EVENTS_READ_MAX = 15_000
"""So many events one request looks at, and goes on in the next one."""
POSITIONS_PASSED_MAX = 500_000
NUMBER_MAX = 2**62
_BISECTED = frozenset({CONFIG, POSITION})
"""The numbers that are known at any position without the events before it."""

SearchMethod = Literal["scan", "bisection"]


class BreakpointView(View):
    """Where something begins to be so: `asOf` is the `at` by which everything is shown as it was
    then, `event` what was recorded there, null when nothing of what was looked at was. `before` and
    `after` are the numbers or the field in front of it and from it on. `alreadyHeld`: it was so
    before the range began, which is where it begins."""

    position: int
    as_of: str
    recorded_at: datetime | None
    run_id: UUID | None
    session_key: str | None
    before: dict[str, JsonValue]
    after: dict[str, JsonValue]
    already_held: bool
    event: EventView | None


class SearchView(View):
    """The breakpoints that were found, in order, and what that took: `eventsRead` in `reads`
    questions to the log, up to `searchedTo`. With a `nextCursor` the search is not at its end."""

    items: list[BreakpointView]
    method: SearchMethod
    events_read: int
    reads: int
    from_position: int
    to_position: int
    searched_to: int
    next_cursor: str | None


class FindEvents(EventsOfRuns, LogPart, Page, Read):
    """Parameters of `find_events`: a condition `when`, or a `field` that `becomes` a value or
    `changes`, or events of `types`, or refusals by a `rule`."""

    MAY_BE_EMPTY = frozenset({"becomes"})

    when: str | None = Field(
        None,
        max_length=TEXT_CHARACTERS_MAX,
        description=(
            "A condition: comparisons (`> >= < <= = !=`) of numbers, with `and`, `or`, `not` and"
            " parentheses."
        ),
        examples=["running > 6 and not config = 2"],
    )
    field: str | None = Field(
        None,
        max_length=64,
        description="A field of a run's state, or of that of `session`, by the view's name.",
    )
    becomes: str | None = Field(
        None, max_length=TEXT_CHARACTERS_MAX, description="The value that it comes to have."
    )
    changes: bool = Field(False, description="Any change of the field.")
    rule: str | None = Field(
        None,
        max_length=64,
        description="Refusals by this rule alone.",
        json_schema_extra={"enum": [*RULE_NAMES]},
    )
    session: str | None = Field(
        None,
        max_length=TEXT_CHARACTERS_MAX,
        description="Of this session and the runs that it asked for: a key, an id, `current`.",
    )
    agent_id: str | None = Field(
        None, max_length=64, description="Of runs of this agent, as it is then."
    )
    begin: str | None = Field(
        None,
        alias="from",
        max_length=MOMENT_CHARACTERS_MAX,
        description=f"Where to begin: {MOMENT_FORMS}. Default: the beginning of the log.",
    )
    limit: int = Field(1, ge=1, le=BREAKPOINTS_MAX, description="How many positions at most.")


@dataclass(frozen=True, slots=True)
class _Place:
    """How far a search is: behind `after`, with what the condition's numbers were there and whether
    it held; None before the range was entered."""

    first: int
    last: int
    after: int
    held: bool | None = None
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Found:
    """What one request has found."""

    breakpoints: Sequence[Breakpoint]
    method: SearchMethod
    events_read: int
    reads: int
    place: _Place
    is_over: bool


@operation(
    "GET",
    "/v1/events/find",
    name="findEvents",
    tag="log",
    scope="read",
    summary="Since when something is so",
    description=(
        "The first positions, between `from` and `to`, at which a condition begins to hold"
        " (`when`), a field of a run's or a session's state becomes a value (`field` with `becomes`"
        " or `changes`), or an event was recorded (`types`, `rule`). Numbers of a condition count"
        " runs by status, `spawned` and `archived` ones, `active` places, the revision of the"
        " configuration (`config`) and the `position`; `runId`, `session`, `tree`, `agentId` and"
        " `rule` say of which runs. One request looks at a bounded number of events: as long as"
        " there is a `nextCursor` there may be more. Without `runId`, `session` or `tree` it needs"
        " a token for the sessions `*`."
    ),
    errors=("not_found", "foreign_cursor"),
    command=Command(
        "event find",
        by_hand=True,
        options={
            "when": Option(
                metavar="CONDITION",
                help="Where this begins to hold: 'running > 6 and not config = 2'. Numbers of runs"
                " by status (running, queued, waiting, preparing, refused, failed, done, …),"
                " spawned, archived, active, config, position.",
            ),
            "field": Option(
                metavar="NAME",
                help="A field of a run, or of --session, by its name in JSON: outcome, stage,"
                " model, maxChildren …",
            ),
            "becomes": Option(metavar="VALUE", help="Where it becomes this."),
            "changes": Option(help="Where it changes at all."),
            "limit": Option(help="How many, the first ones.", default=1, maximum=COMMAND_ITEMS_MAX),
        },
        limit=1,
        columns=(
            Column("POSITION", "asOf", right=True),
            Column("TIME", "recordedAt", "instant"),
            Column("RUN", "runId", "id"),
            Column("EVENT", "event.type"),
            Column("BEFORE", "before", "assignments"),
            Column("AFTER", "after", "assignments", folds=True),
        ),
    ),
)
async def find_events(
    services: QueryServices, caller: Caller, query: FindEvents
) -> Answer[SearchView]:
    """Return the first breakpoints, `limit` at most. A request looks at up to `EVENTS_READ_MAX`
    events; the next one continues from its cursor."""
    _require_one_question(query)
    condition = _parse_when(query)
    head = (await resolve_as_of(services, caller, None)).position
    # What a name means is said by the end of the range, on each page of it.
    last = (await resolve_as_of(services, caller, query.end, pointer="/query/to")).position
    scope, tree = await _scope_of(services, caller, query, last)
    asked = query.model_dump(exclude={"limit", "cursor", "min_position"})
    known = fingerprint("find", asked, scope, caller.patterns)
    if query.cursor is None:
        first = (
            (await resolve_as_of(services, caller, query.begin, pointer="/query/from")).position
            if query.begin is not None
            else 0
        )
        if first > last:
            raise invalid_value("/query/from", f"pos:{first} is behind the end at pos:{last}")
        place = _Place(first, last, 0 if condition is not None else first)
    else:
        names = len(condition.names) if condition is not None else 0
        place = _decode_place(query.cursor, services.work.log.log_id, known, head, names)
    search = _Search(services, query, scope, tree)
    if condition is None:
        found = await search.events(place, is_first=query.cursor is None)
    elif query.cursor is None and condition.names <= _BISECTED and condition.grows(GROWING):
        found = await search.bisect(condition, place)
    else:
        found = await search.condition(condition, place)
    view = SearchView.from_source(
        found,
        items=[_view(one, caller) for one in found.breakpoints],
        from_position=place.first,
        to_position=place.last,
        searched_to=found.place.after,
        next_cursor=(
            None if found.is_over else _encode_place(found.place, services.work.log.log_id, known)
        ),
    )
    return Answer(view, head)


class _Search:
    """One request's part of a search."""

    def __init__(
        self,
        services: QueryServices,
        question: FindEvents,
        scope: RunScope,
        tree: str | None,
    ) -> None:
        self._work = services.work
        self._question = question
        self._scope = scope
        self._tree = tree
        self._limit = question.limit
        self._events_read = 0
        self._reads = 0

    async def condition(self, condition: Condition, place: _Place) -> _Found:
        """Count from the beginning of the log, and look where the condition begins to hold."""
        names = sorted(condition.names)
        numbers = dict(zip(names, place.numbers, strict=True)) if place.numbers else None
        counts = RunCounts(condition.names, self._scope, self._work.registry, numbers)
        finder = ConditionFinder(condition, counts)
        events = self._searched(finder.types, is_folded=True)
        found: list[Breakpoint] = []
        after = place.after
        if place.held is None:
            finder.is_counting = True
            after = await self._count(finder, events, after, place.first)
            if after < place.first:
                rest = tuple(finder.counts.numbers[name] for name in names)
                return self._result(found, _Place(place.first, place.last, after, None, rest))
            for one in finder.begin(place.first):
                found.append(await self._with_event(one))
        else:
            finder.held = place.held
        if len(found) < self._limit:
            after = await self._look(finder, events, after, place.last, found)
        if len(found) >= self._limit:
            last = found[-1]
            values = tuple(last.after[name] for name in names)
            return self._result(
                found,
                _Place(place.first, place.last, last.position, True, values),  # type: ignore[arg-type]
            )
        rest = tuple(finder.counts.numbers[name] for name in names)
        return self._result(found, _Place(place.first, place.last, after, finder.held, rest))

    async def events(self, place: _Place, *, is_first: bool) -> _Found:
        """Look where a field changes, or where there are such events."""
        found: list[Breakpoint] = []
        finder = self._finder()
        if is_first:
            found += await self._held_already(finder, place.first)
        after = place.after
        if len(found) < self._limit:
            events = self._searched(finder.types, is_folded=not isinstance(finder, EventFinder))
            after = await self._look(finder, events, after, place.last, found)
        if len(found) >= self._limit:
            after = found[-1].position
        return self._result(found, _Place(place.first, place.last, after))

    async def bisect(self, condition: Condition, place: _Place) -> _Found:
        """Once it holds it holds on: halve the range until the position is found."""
        before, first = await self._known_numbers(condition, place.first), place.first
        if condition.holds(before):
            found = Breakpoint(position=first, before=before, after=before, is_held=True)
            return self._bisected([await self._with_event(found)], place)
        last, after = place.last, await self._known_numbers(condition, place.last)
        if not condition.holds(after):
            return self._bisected([], place)
        while last - first > 1:
            middle = (first + last) // 2
            numbers = await self._known_numbers(condition, middle)
            if condition.holds(numbers):
                last, after = middle, numbers
            else:
                first, before = middle, numbers
        one = Breakpoint(position=last, before=before, after=after)
        return self._bisected([await self._with_event(one)], place)

    async def _known_numbers(self, condition: Condition, position: int) -> dict[str, int]:
        self._reads += 1
        numbers = {CONFIG: await revision_at(self._work.log, position), POSITION: position}
        return {name: numbers[name] for name in sorted(condition.names)}

    def _bisected(self, found: Sequence[Breakpoint], place: _Place) -> _Found:
        return _Found(found, "bisection", self._events_read, self._reads, place, True)

    async def _count(
        self, finder: ConditionFinder, events: SearchedEvents, after: int, until: int
    ) -> int:
        begin = after
        async for page in events.pages(after, until):
            await self._ready(finder, page.events, after)
            for recorded in page.events:
                await finder.take(recorded)
            after = page.position
            if self._is_enough(after - begin):
                break
        return after

    async def _look(
        self,
        finder: BreakpointFinder,
        events: SearchedEvents,
        after: int,
        until: int,
        found: list[Breakpoint],
    ) -> int:
        """Add what is found to what was; gives the position up to which everything is known."""
        begin = after
        async for page in events.pages(after, until):
            await self._ready(finder, page.events, after)
            for recorded in page.events:
                for one in await finder.take(recorded):
                    found.append(await self._with_event(one))
                    if len(found) == self._limit:
                        return one.position
            after = page.position
            for one in finder.finish(after) if isinstance(finder, ConditionFinder) else ():
                found.append(await self._with_event(one))
                if len(found) == self._limit:
                    return one.position
            if self._is_enough(after - begin):
                break
        return after

    async def _ready(
        self, finder: BreakpointFinder, events: Sequence[RecordedEvent], after: int
    ) -> None:
        self._reads += 1
        self._events_read += len(events)
        await finder.load(events, after)
        # Others are to be answered in between.
        await asyncio.sleep(0)

    def _is_enough(self, passed: int) -> bool:
        return self._events_read >= EVENTS_READ_MAX or passed >= POSITIONS_PASSED_MAX

    def _result(self, found: Sequence[Breakpoint], place: _Place) -> _Found:
        is_over = place.after >= place.last
        return _Found(found, "scan", self._events_read, self._reads, place, is_over)

    def _searched(self, types: tuple[str, ...], *, is_folded: bool) -> SearchedEvents:
        run_id = self._scope.run_id
        return SearchedEvents(
            log=self._work.log,
            types=types,
            run_id=run_id,
            tree=self._tree if run_id is None else None,
            stream=run_stream(run_id) if run_id is not None and is_folded else None,
        )

    def _finder(self) -> BreakpointFinder:
        question, scope = self._question, self._scope
        if question.field is None:
            types = _type_names(question)
            return EventFinder(types, scope, self._work)
        source = RegistryStates(self._work.registry)
        becomes = question.becomes
        if scope.requester is not None:
            return SessionFieldFinder(question.field, becomes, scope.requester, source, self._work)
        return FieldFinder(question.field, becomes, scope, source)

    async def _held_already(self, finder: BreakpointFinder, position: int) -> list[Breakpoint]:
        """Whether the field of the one run or session has the value already where the range
        begins."""
        question, scope = self._question, self._scope
        if question.field is None or question.becomes is None or position == 0:
            return []
        value: JsonValue = None
        if isinstance(finder, SessionFieldFinder):
            value = await finder.value_at(position)
        elif scope.run_id is not None:
            run = await self._work.registry.run(scope.run_id, at=position)
            value = field_value(RUN_FIELDS[question.field], run)
        else:
            return []
        if value is None or not is_value(value, question.becomes):
            return []
        values = {question.field: value}
        one = Breakpoint(
            position=position,
            run_id=scope.run_id,
            session_key=scope.requester,
            before=values,
            after=values,
            is_held=True,
        )
        return [await self._with_event(one)]

    async def _with_event(self, one: Breakpoint) -> Breakpoint:
        """With what was recorded there, if the search was of all that is recorded."""
        is_narrow = self._scope.run_id is not None or self._tree is not None
        if one.recorded is not None or is_narrow or one.position == 0:
            return one
        self._reads += 1
        (recorded,) = await self._work.log.read(after=one.position - 1, limit=1)
        return replace(one, recorded=recorded)


def _view(one: Breakpoint, caller: Caller) -> BreakpointView:
    recorded = one.recorded
    # The configuration is everybody's, and shown to those who see everything.
    is_hidden = recorded is None or (
        isinstance(recorded.event, ConfigurationActivated) and not caller.sees_everything
    )
    return BreakpointView.from_source(
        one,
        as_of=f"pos:{one.position}",
        recorded_at=recorded.envelope.recorded_at if recorded is not None else None,
        already_held=one.is_held,
        event=event_view(recorded) if recorded is not None and not is_hidden else None,
    )


# What may be searched for, and by whom.


def _require_one_question(question: FindEvents) -> None:
    kinds = [question.when is not None, question.field is not None]
    if sum((*kinds, bool(question.types or (question.rule and not any(kinds))))) != 1:
        raise QueryError(
            "invalid_request", "give one of: when (a condition), field, types (or a rule alone)"
        )
    if question.field is not None and (question.becomes is None) != question.changes:
        raise invalid_value(
            "/query/field", "say what it becomes, or that it changes: becomes=VALUE or changes=true"
        )
    if question.field is None and (question.becomes is not None or question.changes):
        raise invalid_value("/query/becomes", "belongs to a field: give field too")
    if sum(one is not None for one in (question.run_id, question.session, question.tree)) > 1:
        raise QueryError("invalid_request", "give one of runId, session and tree")
    if question.rule is not None and question.rule not in RULE_NAMES:
        raise invalid_value("/query/rule", _unknown("rule", question.rule, tuple(RULE_NAMES)))
    if question.rule is not None and (
        question.field is not None or set(_type_names(question)) != {"SpawnRefused"}
    ):
        raise invalid_value("/query/rule", "belongs to refusals: leave it out, or types")
    if question.field is not None:
        _require_field(question)


def _require_field(question: FindEvents) -> None:
    name = str(question.field)
    fields, values = tuple(RUN_FIELDS), RUN_VALUES
    if question.session is not None:
        fields, values = (*SESSION_FIELDS, MAX_CHILDREN), SESSION_VALUES
        if question.agent_id is not None:
            raise invalid_value("/query/agentId", "a session is of one agent: leave it out")
    elif name in FIELDS_OF_A_RUN and name not in fields:
        raise invalid_value(
            "/query/field",
            f"{name} is not searched: it is a text, a list, a part with fields of its own, or made"
            f" of such; there are {', '.join(fields)}",
        )
    if name not in fields:
        raise invalid_value("/query/field", _unknown("field", name, fields))
    if question.becomes is None or name not in values:
        return
    word, words = word_of(question.becomes), (*values[name], "null")
    if word not in words:
        raise invalid_value("/query/becomes", _unknown(name, word, words))


def _unknown(noun: str, word: str, there: Sequence[str]) -> str:
    nearest = nearest_word(word, there)
    hint = f'did you mean "{nearest}"? ' if nearest else ""
    return f'there is no {noun} "{word[:60]}"; {hint}there are {", ".join(there)}'


def _type_names(question: FindEvents) -> tuple[str, ...]:
    names = tuple(name.strip() for name in ",".join(question.types).split(",") if name.strip())
    for name in names:
        if name not in TYPES:
            raise invalid_value("/query/types", _unknown("event type", name, sorted(TYPES)))
    return names or ("SpawnRefused",)


def _parse_when(question: FindEvents) -> Condition | None:
    if question.when is None:
        return None
    try:
        condition = parse_condition(question.when, NAMES)
    except ConditionError as error:
        raise invalid_value("/query/when", str(error)) from None
    narrowed = (question.run_id, question.agent_id, question.rule)
    if ACTIVE in condition.names and any(one is not None for one in narrowed):
        raise invalid_value(
            "/query/when", "active counts the places of sessions: narrow it by session or tree"
        )
    if question.rule is not None and not condition.names <= {"refused", *_BISECTED}:
        raise invalid_value("/query/rule", "a rule narrows the number refused alone")
    return condition


async def _scope_of(
    services: QueryServices, caller: Caller, question: FindEvents, last: int
) -> tuple[RunScope, str | None]:
    """Of which runs something is wanted, and the tree to which all of it belongs, if it is one.
    Sessions are named as they were at `last`. `QueryError` for what the caller may not see."""
    moment = await resolve_as_of(services, caller, None)
    run_id: UUID | None = None
    requester, tree, root = None, question.tree, None
    if question.run_id is not None:
        run = await readable_run(services, caller, question.run_id, moment)
        run_id, root = run.run_id, run.requester.root_session_key
    elif caller.run_id is not None:
        raise QueryError("not_permitted", "a child's token searches in one run: give runId")
    elif question.session is not None:
        requester = await _covered(services, caller, question.session, "/query/session", last)
        session = await services.work.registry.session(requester)
        if session is None:
            raise unknown_session(question.session, position=moment.position)
        root = session.root_session_key
    elif tree is not None:
        root = tree = await resolve_root(services, caller, tree, at=last, must_exist=True)
    else:
        require_whole_log(caller)
    agent_id, rule = question.agent_id, question.rule
    scope = RunScope(run_id=run_id, requester=requester, tree=tree, agent_id=agent_id, rule=rule)
    return scope, root


async def _covered(
    services: QueryServices, caller: Caller, spelling: str, pointer: str, at: int
) -> str:
    key = await resolve_session_key(services, caller, spelling, pointer=pointer, at=at)
    if not await services.access.covers_session(caller, key):
        raise QueryError("not_permitted", "this token does not act for that session")
    return key


# Cursors of a search, which know the numbers as far as they were counted.


def _encode_place(place: _Place, log_id: UUID, question: str) -> str:
    parts = [
        str(log_id), question, place.first, place.last, place.after, place.held, *place.numbers
    ]  # fmt: skip
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


def _decode_place(text: str, log_id: UUID, question: str, head: int, names: int) -> _Place:
    """The place again. `QueryError` for a cursor of another log, and for what is none of this
    question."""
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        parts = orjson.loads(base64.b64decode(padded, b"-_", validate=True))
        log, known, first, last, after, held, *numbers = parts
    except (UnicodeEncodeError, binascii.Error, ValueError, TypeError):
        raise _invalid_cursor() from None
    if not isinstance(log, str) or not isinstance(known, str):
        raise _invalid_cursor()
    if log != str(log_id):
        raise QueryError("foreign_cursor", "this cursor is of another log; begin again without it")
    if known != question:
        raise QueryError(
            "invalid_request", "this cursor belongs to another question; begin again without it"
        )
    whole = all(type(one) is int for one in (first, last, after, *numbers))
    if not whole or len(numbers) != names or not (held is None or isinstance(held, bool)):
        raise _invalid_cursor()
    # The numbers are the caller's word: who changes them gets another answer, and nothing else.
    if not (0 <= first <= last <= head and 0 <= after <= last) or not all(
        abs(one) <= NUMBER_MAX for one in numbers
    ):
        raise _invalid_cursor()
    return _Place(first, last, after, held, tuple(numbers))


def _invalid_cursor() -> QueryError:
    return QueryError("invalid_request", "this is no cursor; begin again without it")

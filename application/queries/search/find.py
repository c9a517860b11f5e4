"""Finds breakpoints: the first positions at which a condition holds, a field becomes a value, or an
event was recorded."""

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
from application.queries.access import Caller, foreign_session, require_whole_log
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
"""Maximum number of events that one request reads; the next one continues from its cursor."""
POSITIONS_PASSED_MAX = 500_000
NUMBER_MAX = 2**62
_BISECTED = frozenset({CONFIG, POSITION})
"""Numbers that are known at any position without reading earlier events."""

SearchMethod = Literal["scan", "bisection"]


class BreakpointView(View):
    """A position at which something begins to hold. Pass `asOf` as `at` to other endpoints to see
    the state there. `event` is the event recorded there, null if none of the scanned events was.
    `before` and `after` are the numbers or the field before that position and from it on.
    `alreadyHeld` is true if it held already when the range began; the position is then the
    beginning."""

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
    """The breakpoints found, in order, and the cost: `eventsRead` events in `reads` queries of the
    log, up to `searchedTo`. If `nextCursor` is set, the search is not complete."""

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
            "Find where this condition begins to hold: comparisons (`> >= < <= = !=`) of numbers,"
            " with `and`, `or`, `not` and parentheses."
        ),
        examples=["running > 6 and not config = 2"],
    )
    field: str | None = Field(
        None,
        max_length=64,
        description=(
            "Find where this field of a run, or of `session`, changes. Requires `becomes` or"
            " `changes`."
        ),
    )
    becomes: str | None = Field(
        None,
        max_length=TEXT_CHARACTERS_MAX,
        description=("Find where the field becomes this value. Requires `field`."),
    )
    changes: bool = Field(False, description="Find every change of the field. Requires `field`.")
    rule: str | None = Field(
        None,
        max_length=64,
        description="Only refusals by this rule.",
        json_schema_extra={"enum": [*RULE_NAMES]},
    )
    session: str | None = Field(
        None,
        max_length=TEXT_CHARACTERS_MAX,
        description=(
            "Only this session and the runs that it requested: a session key, a session id,"
            " or `current`."
        ),
    )
    agent_id: str | None = Field(
        None, max_length=64, description="Only runs of this agent, as of each event."
    )
    begin: str | None = Field(
        None,
        alias="from",
        max_length=MOMENT_CHARACTERS_MAX,
        description=(
            f"Start of the range, exclusive: {MOMENT_FORMS}. Default: the beginning of the log."
        ),
    )
    limit: int = Field(1, ge=1, le=BREAKPOINTS_MAX, description="Maximum number of positions.")


@dataclass(frozen=True, slots=True)
class _Place:
    """Progress of a search: up to `after`, with the condition's numbers and whether it held there;
    None before the range was reached."""

    first: int
    last: int
    after: int
    held: bool | None = None
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Found:
    """Result of one request."""

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
    summary="Find the position at which a condition began to hold",
    description=(
        "Returns the first positions between `from` and `to` at which a condition begins to hold"
        " (`when`), a field of a run or session becomes a value (`field` with `becomes` or"
        " `changes`), or an event was recorded (`types`, `rule`). The numbers of a condition"
        " count runs by status, `spawned` and `archived` runs, and `active` places; `config` is"
        " the configuration revision and `position` the position. `runId`, `session`, `tree`,"
        " `agentId` and `rule` restrict the runs. Each request scans a bounded number of events:"
        " there may be more as long as `nextCursor` is set. Without `runId`, `session` or `tree`"
        " it requires a token for all sessions (`*`)."
    ),
    errors=("not_found", "foreign_cursor"),
    command=Command(
        "event find",
        by_hand=True,
        options={
            "when": Option(
                metavar="CONDITION",
                help=(
                    "Find where this condition begins to hold: 'running > 6 and not config = 2'."
                    " Counts runs by status (running, queued, waiting, preparing, refused, failed,"
                    " done, …), spawned and archived; also active, config, position."
                ),
            ),
            "field": Option(
                metavar="NAME",
                help=(
                    "Field of a run, or of --session, by its JSON name: outcome, stage,"
                    " model, maxChildren …"
                ),
            ),
            "becomes": Option(metavar="VALUE", help="Find where the field becomes this value."),
            "changes": Option(help="Find every change of the field."),
            "limit": Option(
                help="Maximum number of positions.", default=1, maximum=COMMAND_ITEMS_MAX
            ),
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
    """Return the first `limit` breakpoints.

    A request scans up to `EVENTS_READ_MAX` events; the next one continues from its cursor.
    """
    _require_one_question(query)
    condition = _parse_when(query)
    head = (await resolve_as_of(services, caller, None)).position
    # Names are resolved as of the end of the range, on each page.
    last = (await resolve_as_of(services, caller, query.end, pointer="/query/to")).position
    scope, tree = await _scope_of(services, caller, query, last)
    parameters = query.model_dump(exclude={"limit", "cursor", "min_position"})
    known = fingerprint("find", parameters, scope, caller.patterns)
    if query.cursor is None:
        first = (
            (await resolve_as_of(services, caller, query.begin, pointer="/query/from")).position
            if query.begin is not None
            else 0
        )
        if first > last:
            raise invalid_value(
                "/query/from", (f"pos:{first} is after the end of the range, pos:{last}")
            )
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
        items=[_view(point, caller) for point in found.breakpoints],
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
        """Count from the beginning of the log, and find where the condition begins to hold."""
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
            for point in finder.begin(place.first):
                found.append(await self._with_event(point))
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
        """Find where a field changes, or where matching events are."""
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
        """Find a monotonic condition by bisection of the range."""
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
        found = Breakpoint(position=last, before=before, after=after)
        return self._bisected([await self._with_event(found)], place)

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
        """Append breakpoints to `found`, and return the position up to which the log was
        searched."""
        begin = after
        async for page in events.pages(after, until):
            await self._ready(finder, page.events, after)
            for recorded in page.events:
                for point in await finder.take(recorded):
                    found.append(await self._with_event(point))
                    if len(found) == self._limit:
                        return point.position
            after = page.position
            for point in finder.finish(after) if isinstance(finder, ConditionFinder) else ():
                found.append(await self._with_event(point))
                if len(found) == self._limit:
                    return point.position
            if self._is_enough(after - begin):
                break
        return after

    async def _ready(
        self, finder: BreakpointFinder, events: Sequence[RecordedEvent], after: int
    ) -> None:
        self._reads += 1
        self._events_read += len(events)
        await finder.load(events, after)
        # Let other requests run in between.
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
        """Return a breakpoint if the field of the run or session has the value when the range
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
        found = Breakpoint(
            position=position,
            run_id=scope.run_id,
            session_key=scope.requester,
            before=values,
            after=values,
            is_held=True,
        )
        return [await self._with_event(found)]

    async def _with_event(self, point: Breakpoint) -> Breakpoint:
        """Add the event at the breakpoint, if the search covers the whole log."""
        is_narrow = self._scope.run_id is not None or self._tree is not None
        if point.recorded is not None or is_narrow or point.position == 0:
            return point
        self._reads += 1
        (recorded,) = await self._work.log.read(after=point.position - 1, limit=1)
        return replace(point, recorded=recorded)


def _view(point: Breakpoint, caller: Caller) -> BreakpointView:
    recorded = point.recorded
    # The configuration concerns all sessions, so only callers that see everything see its events.
    is_hidden = recorded is None or (
        isinstance(recorded.event, ConfigurationActivated) and not caller.sees_everything
    )
    return BreakpointView.from_source(
        point,
        as_of=f"pos:{point.position}",
        recorded_at=recorded.envelope.recorded_at if recorded is not None else None,
        already_held=point.is_held,
        event=event_view(recorded) if recorded is not None and not is_hidden else None,
    )


# Validation and access.


def _require_one_question(question: FindEvents) -> None:
    kinds = [question.when is not None, question.field is not None]
    if sum((*kinds, bool(question.types or (question.rule and not any(kinds))))) != 1:
        raise QueryError(
            "invalid_request",
            "give exactly one of when (a condition), field, and event types (or rule alone)",
        )
    if question.field is not None and (question.becomes is None) != question.changes:
        raise invalid_value(
            "/query/field", "requires either becomes (a value) or changes (any value)"
        )
    if question.field is None and (question.becomes is not None or question.changes):
        raise invalid_value("/query/becomes", "requires field")
    if sum(value is not None for value in (question.run_id, question.session, question.tree)) > 1:
        raise QueryError("invalid_request", "name at most one run, session or tree")
    if question.rule is not None and question.rule not in RULE_NAMES:
        raise invalid_value("/query/rule", _unknown("rule", question.rule, tuple(RULE_NAMES)))
    if question.rule is not None and (
        question.field is not None or set(_type_names(question)) != {"SpawnRefused"}
    ):
        raise invalid_value(
            "/query/rule", "only applies to refusals; omit the rule or the event types"
        )
    if question.field is not None:
        _require_field(question)


def _require_field(question: FindEvents) -> None:
    name = str(question.field)
    fields, values = tuple(RUN_FIELDS), RUN_VALUES
    if question.session is not None:
        fields, values = (*SESSION_FIELDS, MAX_CHILDREN), SESSION_VALUES
        if question.agent_id is not None:
            raise invalid_value(
                "/query/agentId", ("cannot be combined with session, which has one agent")
            )
    elif name in FIELDS_OF_A_RUN and name not in fields:
        raise invalid_value(
            "/query/field",
            f"{name} is not searchable: it is a text, a list, an object, or derived from one; the"
            f" fields are {', '.join(fields)}",
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
    if ACTIVE in condition.names and any(value is not None for value in narrowed):
        raise invalid_value(
            "/query/when", "active counts the places of sessions; restrict it by session or tree"
        )
    if question.rule is not None and not condition.names <= {"refused", *_BISECTED}:
        raise invalid_value("/query/rule", "rule only restricts the number refused")
    return condition


async def _scope_of(
    services: QueryServices, caller: Caller, question: FindEvents, last: int
) -> tuple[RunScope, str | None]:
    """Return the runs to search, and the tree that they all belong to, if it is known.

    Sessions are named as of `last`.

    Raises:
        QueryError: The caller may not see the run, session or tree.
    """
    moment = await resolve_as_of(services, caller, None)
    run_id: UUID | None = None
    requester, tree, root = None, question.tree, None
    if question.run_id is not None:
        run = await readable_run(services, caller, question.run_id, moment)
        run_id, root = run.run_id, run.requester.root_session_key
    elif caller.run_id is not None:
        raise QueryError("not_permitted", "a child's token may only search one run; name it")
    elif question.session is not None:
        requester = await _covered(services, caller, question.session, "/query/session", last)
        session = await services.work.registry.session(requester)
        if session is None:
            raise await unknown_session(
                services, caller, question.session, position=moment.position
            )
        root = session.root_session_key
    elif tree is not None:
        root = tree = await resolve_root(services, caller, tree, at=last, is_required=True)
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
        raise foreign_session(caller)
    return key


# Cursors, which carry the numbers counted so far.


def _encode_place(place: _Place, log_id: UUID, question: str) -> str:
    parts = [
        str(log_id), question, place.first, place.last, place.after, place.held, *place.numbers
    ]  # fmt: skip
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


def _decode_place(text: str, log_id: UUID, question: str, head: int, names: int) -> _Place:
    """Return the decoded cursor.

    Raises:
        QueryError: The cursor belongs to another log or query, or is invalid.
    """
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        parts = orjson.loads(base64.b64decode(padded, b"-_", validate=True))
        log, known, first, last, after, held, *numbers = parts
    except (UnicodeEncodeError, binascii.Error, ValueError, TypeError):
        raise _invalid_cursor() from None
    if not isinstance(log, str) or not isinstance(known, str):
        raise _invalid_cursor()
    if log != str(log_id):
        raise QueryError(
            "foreign_cursor", ("this cursor belongs to another log; start again without it")
        )
    if known != question:
        raise QueryError(
            "invalid_request", "this cursor belongs to another query; start again without it"
        )
    whole = all(type(number) is int for number in (first, last, after, *numbers))
    if not whole or len(numbers) != names or not (held is None or isinstance(held, bool)):
        raise _invalid_cursor()
    # The numbers are not signed: a caller that changes them only gets a wrong answer.
    if not (0 <= first <= last <= head and 0 <= after <= last) or not all(
        abs(number) <= NUMBER_MAX for number in numbers
    ):
        raise _invalid_cursor()
    return _Place(first, last, after, held, tuple(numbers))


def _invalid_cursor() -> QueryError:
    return QueryError("invalid_request", "this is not a cursor; start again without it")

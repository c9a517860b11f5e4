"""Finders that scan events one by one: for a condition, for a field, or for events."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast, get_args
from uuid import UUID

from pydantic import JsonValue

from application.log.envelope import RecordedEvent
from application.log.unit_of_work import UnitOfWork
from application.projections.fold import StateSource, load_missing
from application.queries.configuration import configuration_in_force
from application.queries.search.condition import POSITION, Condition
from application.queries.search.counts import RunCounts, RunScope
from application.queries.search.fields import (
    MAX_CHILDREN,
    RUN_FIELDS,
    SESSION_FIELDS,
    field_value,
    is_value,
)
from application.queries.search.states import type_names
from domain.event_types import ConfigurationActivated
from domain.run.events import RunEvent, SpawnRefused
from domain.run.state import Run
from domain.session.events import SessionEvent, SessionObserved
from domain.session.state import Session
from domain.states import States, states
from domain.values.record import session_stream

Values = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakpoint:
    """A position from which on something holds.

    `recorded` is None if none of the scanned events was recorded there. `is_held` is True if it
    held already; nothing before that position was scanned.
    """

    position: int
    recorded: RecordedEvent | None = None
    run_id: UUID | None = None
    session_key: str | None = None
    before: Values = field(default_factory=dict)
    after: Values = field(default_factory=dict)
    is_held: bool = False


class BreakpointFinder(Protocol):
    """Consumer of events in order. `types` are the names of the events that it needs."""

    @property
    def types(self) -> tuple[str, ...]: ...

    async def load(self, events: Sequence[RecordedEvent], after: int) -> None:
        """Prepare for these events, which are all that it needs after position `after`."""
        ...

    async def take(self, recorded: RecordedEvent) -> Sequence[Breakpoint]:
        """Return the breakpoints up to and including an event."""
        ...


class ConditionFinder:
    """Finder of positions where a condition begins to hold. `held` is True if it holds already."""

    def __init__(self, condition: Condition, counts: RunCounts) -> None:
        self._condition = condition
        self.counts = counts
        self.held = False
        self.is_counting = False
        """True while events before the range are counted; no breakpoint is returned then."""

    @property
    def types(self) -> tuple[str, ...]:
        """Return the names of the events that change one of the numbers."""
        return self.counts.types

    def begin(self, position: int) -> Sequence[Breakpoint]:
        """Begin the range after the counted events; return a breakpoint if the condition holds
        already."""
        self.is_counting = False
        if POSITION in self.counts.numbers:
            self.counts.numbers[POSITION] = position
        self.held = self._condition.holds(self.counts.numbers)
        values = dict(self.counts.numbers)
        found = Breakpoint(position=position, before=values, after=values, is_held=True)
        return [found] if self.held else []

    async def load(self, events: Sequence[RecordedEvent], after: int) -> None:
        """Load the states of the runs before these events."""
        await self.counts.load(events, after)

    async def take(self, recorded: RecordedEvent) -> Sequence[Breakpoint]:
        """Return the breakpoints up to this event, beginning after the previous one."""
        found = list(self.finish(recorded.envelope.position - 1))
        before = dict(self.counts.numbers)
        self.counts.take(recorded)
        return found + self._look(recorded.envelope.position, before, recorded)

    def finish(self, position: int) -> Sequence[Breakpoint]:
        """Return the breakpoints up to `position` that the position alone causes."""
        numbers = self.counts.numbers
        if POSITION not in numbers or self.is_counting:
            return []
        found = []
        for turning in self._condition.turning_positions(numbers):
            if numbers[POSITION] < turning <= position:
                before = {**numbers, POSITION: turning - 1}
                numbers[POSITION] = turning
                found += self._look(turning, before, None)
        numbers[POSITION] = max(position, numbers[POSITION])
        return found

    def _look(
        self, position: int, before: dict[str, int], recorded: RecordedEvent | None
    ) -> list[Breakpoint]:
        if self.is_counting:
            return []
        held, self.held = self.held, self._condition.holds(self.counts.numbers)
        if held or not self.held:
            return []
        if POSITION in before:
            before[POSITION] = position - 1
        return [
            Breakpoint(
                position=position,
                recorded=recorded,
                run_id=recorded.envelope.provenance.run_id if recorded is not None else None,
                before=before,
                after=dict(self.counts.numbers),
            )
        ]


class FieldFinder:
    """Finder of positions where a field of a run becomes a value, or changes at all if the value is
    None.
    """

    def __init__(
        self, name: str, becomes: str | None, scope: RunScope, source: StateSource
    ) -> None:
        self._name = name
        self._becomes = becomes
        self._scope = scope
        self._source = source
        self._states = States()
        self.types = type_names(get_args(RunEvent))

    async def load(self, events: Sequence[RecordedEvent], after: int) -> None:
        """Load the states before these events."""
        self._states.shrink()
        await load_missing(self._states, events, self._source, after)

    async def take(self, recorded: RecordedEvent) -> Sequence[Breakpoint]:
        """Return the breakpoint at an event, if there is one."""
        ((_, run_before, run),) = states((recorded,), self._states)
        if not isinstance(run, Run) or not self._scope.takes(run):
            return []
        read = RUN_FIELDS[self._name]
        before, after = (
            field_value(read, cast("Run | None", state)) for state in (run_before, run)
        )
        if before == after or not _is_wanted(after, self._becomes):
            return []
        return [
            Breakpoint(
                position=recorded.envelope.position,
                recorded=recorded,
                run_id=run.run_id,
                before={self._name: before},
                after={self._name: after},
            )
        ]


class SessionFieldFinder:
    """Finder of positions where a field of one session becomes a value, or changes at all."""

    def __init__(
        self,
        name: str,
        becomes: str | None,
        session_key: str,
        source: StateSource,
        work: UnitOfWork,
    ) -> None:
        self._name = name
        self._becomes = becomes
        self._session_key = session_key
        self._source = source
        self._states = States()
        self._work = work
        self._last: tuple[JsonValue] | None = None
        # The cap exists from the session's first event on, and changes with the configuration.
        of_cap = (SessionObserved, ConfigurationActivated)
        self.types = type_names(of_cap if name == MAX_CHILDREN else get_args(SessionEvent))

    async def load(self, events: Sequence[RecordedEvent], after: int) -> None:
        """Load the state before these events."""
        own = [recorded for recorded in events if self._is_own(recorded)]
        await load_missing(self._states, own, self._source, after)

    async def take(self, recorded: RecordedEvent) -> Sequence[Breakpoint]:
        """Return the breakpoint at an event, if there is one."""
        position = recorded.envelope.position
        if self._name == MAX_CHILDREN:
            if not (self._is_own(recorded) or isinstance(recorded.event, ConfigurationActivated)):
                return []
            before = await self.value_at(position - 1) if self._last is None else self._last[0]
            after = await self.value_at(position)
            self._last = (after,)
        elif self._is_own(recorded):
            (step,) = states((recorded,), self._states)
            read = SESSION_FIELDS[self._name]
            before, after = (
                field_value(read, cast("Session | None", state))
                for state in (step.before, step.after)
            )
        else:
            return []
        if before == after or not _is_wanted(after, self._becomes):
            return []
        return [
            Breakpoint(
                position=position,
                recorded=recorded,
                session_key=self._session_key,
                before={self._name: before},
                after={self._name: after},
            )
        ]

    async def value_at(self, position: int) -> JsonValue:
        """Return the field as of a position.

        Null if there is no session, or the configuration in force then cannot be read.
        """
        session = await self._work.registry.session(self._session_key, at=position)
        if session is None:
            return None
        if self._name != MAX_CHILDREN:
            return field_value(SESSION_FIELDS[self._name], session)
        configuration = await configuration_in_force(self._work, position)
        if configuration is None:
            return None
        return configuration.subagent_defaults.max_children_per_agent

    def _is_own(self, recorded: RecordedEvent) -> bool:
        return recorded.envelope.stream == session_stream(self._session_key)


class EventFinder:
    """Finder of events of some types, or of refusals by a rule."""

    def __init__(self, types: Collection[str], scope: RunScope, work: UnitOfWork) -> None:
        self.types = tuple(sorted(types))
        self._scope = scope
        self._registry = work.registry

    async def load(self, events: Sequence[RecordedEvent], after: int) -> None:
        """Do nothing: no state is needed."""

    async def take(self, recorded: RecordedEvent) -> Sequence[Breakpoint]:
        """Return the event if it matches."""
        event, envelope = recorded.event, recorded.envelope
        rule = self._scope.rule
        if rule is not None and not (isinstance(event, SpawnRefused) and event.rule == rule):
            return []
        run_id = envelope.provenance.run_id
        if not await self._is_in_scope(recorded, run_id):
            return []
        return [Breakpoint(position=envelope.position, recorded=recorded, run_id=run_id)]

    async def _is_in_scope(self, recorded: RecordedEvent, run_id: UUID | None) -> bool:
        requester, agent_id = self._scope.requester, self._scope.agent_id
        if requester is None and agent_id is None:
            return True
        own_stream = session_stream(requester) if requester is not None else None
        if agent_id is None and recorded.envelope.stream == own_stream:
            return True
        if run_id is None:
            return False
        run = await self._registry.run(run_id, at=recorded.envelope.position)
        return run is not None and self._scope.takes(run)


def _is_wanted(value: JsonValue, becomes: str | None) -> bool:
    return becomes is None or is_value(value, becomes)

"""Counts of runs by status and other numbers, updated while the log is scanned."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, get_args
from uuid import UUID

from application.log.envelope import RecordedEvent
from application.ports.registry import Registry
from application.queries.search.condition import POSITION, Numbers
from application.queries.search.states import type_names
from application.queries.views.run import STATUS_BY_OUTCOME, RunStatus, status_of
from domain.event_types import ConfigurationActivated
from domain.run.events import (
    AgentOverridden,
    DependencyMet,
    MessageReceived,
    RunArchived,
    RunEnded,
    RunQueued,
    RunStarted,
    RunWaits,
    SessionCreated,
    SpawnRefused,
    SpawnRequested,
    StopRequested,
)
from domain.run.state import Run
from domain.session.events import ChildAdmitted, ChildReleased
from domain.values.record import run_id_of, session_stream

STATUSES: tuple[str, ...] = get_args(RunStatus)
ARCHIVED, SPAWNED, ACTIVE, CONFIG = "archived", "spawned", "active", "config"
NAMES = frozenset({*STATUSES, SPAWNED, ARCHIVED, ACTIVE, CONFIG, POSITION})
"""Names of all numbers: runs by status, requested runs, archived runs, occupied places,
configuration revision, and position."""
GROWING = frozenset({SPAWNED, "refused", ARCHIVED, CONFIG, POSITION})
"""Numbers that never decrease."""
MARKS_MAX = 50_000
"""Maximum number of runs in memory between two pages of events."""

_BIRTHS = (SpawnRequested, MessageReceived)
_PLACES = (ChildAdmitted, ChildReleased)
_ENDED = (RunEnded, StopRequested)
_TYPES: Mapping[str, tuple[type, ...]] = {
    "preparing": (*_BIRTHS, RunWaits, DependencyMet, RunQueued, RunEnded, SpawnRefused),
    "waiting": (RunWaits, DependencyMet, RunQueued, RunEnded),
    "queued": (RunQueued, RunStarted, RunEnded),
    "running": (RunStarted, RunEnded),
    "refused": (SpawnRefused,),
    **dict.fromkeys(STATUS_BY_OUTCOME.values(), _ENDED),
    SPAWNED: _BIRTHS,
    ARCHIVED: (RunArchived,),
    ACTIVE: _PLACES,
    CONFIG: (ConfigurationActivated,),
    POSITION: (),
}
"""The events that change each number, including those by which a run leaves a status."""
_LEFT_BY: Mapping[type, frozenset[str]] = {
    RunStarted: frozenset({"queued"}),
    RunQueued: frozenset({"preparing", "waiting"}),
    RunEnded: frozenset({"preparing", "waiting", "queued", "running"}),
    SpawnRefused: frozenset({"preparing"}),
    RunWaits: frozenset({"preparing"}),
    DependencyMet: frozenset(NAMES),
    StopRequested: frozenset(STATUS_BY_OUTCOME.values()),
    RunArchived: frozenset(),
}
"""The statuses that a run may leave by an event.

Only for these must the run's previous status be known. The runs that a run still waits for must be
known anyway.
"""
_TYPES_OF_AGENTS = (*_BIRTHS, AgentOverridden, SessionCreated)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScope:
    """The runs to count; None matches any. `requester` is the canonical key of the requesting
    session, `rule` the rule that refused them."""

    run_id: UUID | None = None
    requester: str | None = None
    tree: str | None = None
    agent_id: str | None = None
    rule: str | None = None

    def takes(self, run: Run) -> bool:
        """Return True if the run is in scope."""
        if self.run_id is not None and run.run_id != self.run_id:
            return False
        if self.tree is not None and run.requester.root_session_key != self.tree:
            return False
        return self.takes_mark(run.requester.session_key, run.agent_id)

    def takes_mark(self, requester: str | None, agent_id: str | None) -> bool:
        """Return True if a run with this requester and agent is in scope. The tree is not
        checked."""
        if self.requester is not None and requester != self.requester:
            return False
        return self.agent_id is None or agent_id == self.agent_id


class RunMark(NamedTuple):
    """Facts of a run that counting needs.

    Without a status, the run is counted nowhere. Requester and agent are known if they are filtered
    by.
    """

    status: str | None = None
    waits_for: frozenset[UUID] = frozenset()
    requester: str | None = None
    agent_id: str | None = None
    rule: str | None = None
    is_archived: bool = False


UNMARKED = RunMark()


class RunCounts:
    """The numbers after the events processed so far.

    `names` are the numbers to count. Counting resumes from `numbers` if given; otherwise it must
    begin with the log's first event.
    """

    def __init__(
        self,
        names: frozenset[str],
        scope: RunScope,
        registry: Registry,
        numbers: Numbers | None = None,
    ) -> None:
        self.numbers: dict[str, int] = dict.fromkeys(sorted(names), 0) | dict(numbers or {})
        self._scope = scope
        self._registry = registry
        self._place_stream = session_stream(scope.requester) if scope.requester else None
        self._marks: dict[UUID, RunMark] = {}
        self._are_complete = numbers is None

    @property
    def _is_narrow(self) -> bool:
        """Return True if the requester or agent of each run must be known."""
        return self._scope.agent_id is not None or self._scope.requester is not None

    def _needs_state(self, event: object) -> bool:
        """Return True if the run's state before the event affects the numbers."""
        if self._is_narrow or SPAWNED in self.numbers:
            return True
        return not self.numbers.keys().isdisjoint(_LEFT_BY.get(type(event), NAMES))

    @property
    def types(self) -> tuple[str, ...]:
        """Return the names of the events that change one of the numbers."""
        kinds = {kind for name in self.numbers for kind in _TYPES[name]}
        if self._is_narrow and self.numbers.keys() - {POSITION, CONFIG, ACTIVE}:
            kinds.update(_TYPES_OF_AGENTS)
        return type_names(kinds)

    async def load(self, events: Sequence[RecordedEvent], after: int) -> None:
        """Load the state of the runs before these events, as of position `after`.

        Args:
            events: All matching events after `after`, in order.
            after: The position that the counts have reached.
        """
        if len(self._marks) > MARKS_MAX:
            for oldest in list(self._marks)[: len(self._marks) - MARKS_MAX]:
                del self._marks[oldest]
            self._are_complete = False
        if self._are_complete:
            return
        known: set[UUID] = set()
        unknown: dict[UUID, None] = {}
        for recorded in events:
            run_id = run_id_of(recorded.envelope.stream)
            if run_id is None or run_id in self._marks or run_id in known or run_id in unknown:
                continue
            if recorded.envelope.version == 1 or not self._needs_state(recorded.event):
                known.add(run_id)
            else:
                unknown[run_id] = None
        found = await asyncio.gather(*(self._registry.run(run_id, at=after) for run_id in unknown))
        self._marks |= {run.run_id: _mark_of(run) for run in found if run is not None}

    def take(self, recorded: RecordedEvent) -> None:
        """Update the numbers by one event."""
        event, numbers = recorded.event, self.numbers
        if POSITION in numbers:
            numbers[POSITION] = recorded.envelope.position
        if isinstance(event, ConfigurationActivated):
            if CONFIG in numbers:
                numbers[CONFIG] = event.revision
        elif isinstance(event, _PLACES):
            if ACTIVE in numbers and self._place_stream in (None, recorded.envelope.stream):
                numbers[ACTIVE] += 1 if isinstance(event, ChildAdmitted) else -1
        else:
            run_id = run_id_of(recorded.envelope.stream)
            assert run_id is not None
            known = self._marks.pop(run_id, None)
            mark = _mark_after(known or UNMARKED, event)
            # Insert at the end, so that the least recently used run is evicted first.
            self._marks[run_id] = mark
            self._count(known, -1)
            self._count(mark, 1)

    def _count(self, mark: RunMark | None, by: int) -> None:
        if mark is None or not self._scope.takes_mark(mark.requester, mark.agent_id):
            return
        numbers = self.numbers
        if SPAWNED in numbers:
            numbers[SPAWNED] += by
        if mark.status in numbers and self._scope.rule in (None, mark.rule):
            numbers[mark.status] += by
        if mark.is_archived and ARCHIVED in numbers:
            numbers[ARCHIVED] += by


def _mark_of(run: Run) -> RunMark:
    return RunMark(
        status=status_of(run),
        waits_for=frozenset(run.waits_for or ()),
        requester=run.requester.session_key,
        agent_id=run.agent_id,
        rule=run.refusal.rule if run.refusal is not None else None,
        is_archived=run.stage == "archived",
    )


def _mark_after(mark: RunMark, event: object) -> RunMark:
    """Return the mark after an event, with the status that `status_of` would give."""
    match event:
        case RunStarted():
            return mark._replace(status="running")
        case RunEnded():
            return mark._replace(status=STATUS_BY_OUTCOME[event.outcome])
        case RunQueued():
            return mark._replace(status="queued")
        case SpawnRequested():
            return RunMark(
                status="preparing",
                requester=event.requester.session_key,
                agent_id=event.requested_agent_id,
            )
        case MessageReceived():
            return RunMark(
                status="preparing",
                requester=event.requester.session_key,
                agent_id=event.agent_id,
            )
        case SessionCreated():
            return mark._replace(agent_id=event.agent_id)
        case AgentOverridden():
            return mark._replace(agent_id=event.to_agent_id)
        case SpawnRefused():
            return mark._replace(status="refused", rule=event.rule)
        case RunArchived():
            return mark._replace(is_archived=True)
        case RunWaits():
            return mark._replace(status="waiting", waits_for=frozenset(event.run_ids))
        case DependencyMet():
            left = mark.waits_for - {event.run_id}
            return mark._replace(status="waiting" if left else "preparing", waits_for=left)
        case StopRequested() if mark.status in STATUS_BY_OUTCOME.values():
            return mark._replace(status="stopped")
        case _:
            return mark

"""The numbers of a registry while the log is looked through: how many runs are at what."""

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
"""The numbers that there are: of runs by status, all that were asked for, those put away, the
places that are taken, the revision of the configuration, and the position."""
GROWING = frozenset({SPAWNED, "refused", ARCHIVED, CONFIG, POSITION})
"""Those that never become smaller."""
MARKS_MAX = 50_000
"""How many runs are in memory between two pages of events."""

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
"""The events by which a number changes, those by which a run leaves a status included."""
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
"""The statuses that a run may leave by an event: only for these it has to be known what it was.
Which runs are still waited for has to be known anyway."""
_TYPES_OF_AGENTS = (*_BIRTHS, AgentOverridden, SessionCreated)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScope:
    """Of which runs something is wanted; None means any. `requester` is the canonical key of the
    session that asked for them, `rule` that by which they were refused."""

    run_id: UUID | None = None
    requester: str | None = None
    tree: str | None = None
    agent_id: str | None = None
    rule: str | None = None

    def takes(self, run: Run) -> bool:
        """Whether a run, as it is, is wanted."""
        if self.run_id is not None and run.run_id != self.run_id:
            return False
        if self.tree is not None and run.requester.root_session_key != self.tree:
            return False
        return self.takes_mark(run.requester.session_key, run.agent_id)

    def takes_mark(self, requester: str | None, agent_id: str | None) -> bool:
        """The same of what is known of a run; those of other trees are not looked at."""
        if self.requester is not None and requester != self.requester:
            return False
        return self.agent_id is None or agent_id == self.agent_id


class RunMark(NamedTuple):
    """What a count needs of a run. Without a status it is at none that is counted; requester and
    agent are known when they are asked about."""

    status: str | None = None
    waits_for: frozenset[UUID] = frozenset()
    requester: str | None = None
    agent_id: str | None = None
    rule: str | None = None
    is_archived: bool = False


UNMARKED = RunMark()


class RunCounts:
    """The numbers as they are after the events that were taken in. `names` are those wanted;
    `numbers` goes on from where an earlier one was, else the first event is the log's first."""

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
        """Whether a run without a mark is at nothing that is counted."""

    @property
    def _is_narrow(self) -> bool:
        """Whether it has to be known of each run whose it is."""
        return self._scope.agent_id is not None or self._scope.requester is not None

    def _must_know(self, event: object) -> bool:
        """Whether what was before the event makes a difference."""
        if self._is_narrow or SPAWNED in self.numbers:
            return True
        return not self.numbers.keys().isdisjoint(_LEFT_BY.get(type(event), NAMES))

    @property
    def types(self) -> tuple[str, ...]:
        """The events that change one of the numbers."""
        kinds = {kind for name in self.numbers for kind in _TYPES[name]}
        if self._is_narrow and self.numbers.keys() - {POSITION, CONFIG, ACTIVE}:
            kinds.update(_TYPES_OF_AGENTS)
        return type_names(kinds)

    async def load(self, events: Sequence[RecordedEvent], after: int) -> None:
        """Have in memory, as of the position `after`, what these events go on from; they are all
        that is wanted behind it, in order."""
        if len(self._marks) > MARKS_MAX:
            for oldest in list(self._marks)[: len(self._marks) - MARKS_MAX]:
                del self._marks[oldest]
            self._are_complete = False
        if self._are_complete:
            return
        known: set[UUID] = set()
        unknown: dict[UUID, None] = {}
        for one in events:
            run_id = run_id_of(one.envelope.stream)
            if run_id is None or run_id in self._marks or run_id in known or run_id in unknown:
                continue
            if one.envelope.version == 1 or not self._must_know(one.event):
                known.add(run_id)
            else:
                unknown[run_id] = None
        found = await asyncio.gather(*(self._registry.run(one, at=after) for one in unknown))
        self._marks |= {run.run_id: _mark_of(run) for run in found if run is not None}

    def take(self, recorded: RecordedEvent) -> None:
        """Take an event in."""
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
            # Put in at the end: what was used last is forgotten last.
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
    """What `status_of` gives after the event, for those events by which it becomes another."""
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

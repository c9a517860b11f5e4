"""The registry as it is, and as it was at any position."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol
from uuid import UUID

from domain.run.state import Run
from domain.session.state import Session

RESPAWNS_MAX = 100
"""So many of the runs that were made from one are told with it; all of them are in lists."""


@dataclass(frozen=True, slots=True)
class StatusRows:
    """What the rows of one status have in common: their stages, and where it is given the outcome
    and whether they wait for others."""

    stages: tuple[str, ...]
    outcome: str | None = None
    waiting: bool | None = None


Comparison = Literal["=", "any of", "begins with", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class RunCondition:
    """A comparison of a column of the rows of runs with a value.

    Attributes:
        column: A column of `RunRow`, or `status`, which is any of several `StatusRows`.
        comparison: How to compare it. A row without a value in the column does not fit.
        value: The value; a tuple if the comparison is `any of`.
    """

    column: str
    comparison: Comparison
    value: Any


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which runs: those whose rows fit all conditions."""

    conditions: tuple[RunCondition, ...] = ()

    @classmethod
    def where(cls, **values: Any) -> "RunQuery":
        """Return the query of runs by the values of columns. A tuple means any of its values."""
        return cls(
            tuple(
                RunCondition(column, "any of" if isinstance(value, tuple) else "=", value)
                for column, value in values.items()
            )
        )

    def value_of(self, column: str) -> Any | None:
        """Return the value that all these runs have in a column, None if they may differ."""
        found = (one for one in self.conditions if (one.column, one.comparison) == (column, "="))
        return next((one.value for one in found), None)

    def split(self, columns: Container[str]) -> tuple["RunQuery", "RunQuery"]:
        """Return the conditions on values of some columns, and the other conditions."""
        inside, outside = list[RunCondition](), list[RunCondition]()
        for one in self.conditions:
            by_value = one.column in columns and one.comparison in ("=", "any of")
            (inside if by_value else outside).append(one)
        return RunQuery(tuple(inside)), RunQuery(tuple(outside))


@dataclass(frozen=True, slots=True)
class Respawn:
    """A run that was made from an earlier one, and the session that asked for it."""

    run_id: UUID
    requester: str


class WaitingLane(NamedTuple):
    """A lane in which a run waits. `is_full` if the first in line, as many as it is wide, are held;
    a lane that is not may be full as well."""

    lane: str
    depth: int
    is_full: bool


class LanePlace(NamedTuple):
    """A run in a lane; `holder` has its slot in hand, None for one that waits."""

    run_id: UUID
    label: str | None
    requester: str
    holder: str | None


@dataclass(frozen=True, slots=True)
class LaneState:
    """One lane at one depth: who holds a slot and who waits, in order."""

    lane: str
    depth: int
    running: tuple[LanePlace, ...]
    queued: tuple[LanePlace, ...]


@dataclass(frozen=True, slots=True)
class InboxQuery:
    """Which announcements: those to one requester, or to any; `is_parked` for those alone that are
    not sent to some webhook any more."""

    requester: str | None = None
    is_parked: bool = False


class ChangedStream(NamedTuple):
    """A stream with events between two positions, and where the first of them stands."""

    stream: str
    position: int


class ChangedStreams(NamedTuple):
    """Streams in the order of their first events; the log was looked through up to `examined`."""

    streams: Sequence[ChangedStream]
    examined: int


class StatesAsOf(NamedTuple):
    """Runs and sessions as of a position, those that existed."""

    runs: Mapping[UUID, Run]
    sessions: Mapping[str, Session]


class Registry(Protocol):
    """Reads rows. `at` is a position; None means the newest state."""

    async def run(self, run_id: UUID, *, at: int | None = None) -> Run | None:
        """One run; None when it is not on record (yet, at that position)."""
        ...

    async def run_at_version(self, run_id: UUID, version: int) -> Run | None:
        """One run as it was after so many events of its own."""
        ...

    async def runs_of_session(self, child_session_key: str, *, limit: int) -> Sequence[Run]:
        """The runs of a child session but those that were refused, the newest first."""
        ...

    async def runs_by_label(self, tree: str, labels: Sequence[str], *, limit: int) -> Sequence[Run]:
        """The newest run of each session of a tree that has one of these labels and was not
        refused, the newest first."""
        ...

    async def runs_by_label_prefix(
        self, requester: str, prefix: str, *, limit: int
    ) -> Sequence[Run]:
        """The newest run of each session that a requester has spawned whose label begins like this,
        but those refused: first those with just this label, and the newest first."""
        ...

    async def runs_by_id_prefix(self, prefix: str, *, limit: int) -> Sequence[Run]:
        """Runs whose id begins like this, with its dashes or without, by their ids."""
        ...

    async def runs(
        self,
        query: RunQuery,
        *,
        at: int,
        limit: int,
        behind: int | None = None,
        ascending: bool = False,
    ) -> Sequence[Run]:
        """Runs by position of creation, newest first, those behind the position `behind`."""
        ...

    async def respawns(self, run_id: UUID, *, at: int) -> Sequence[Respawn]:
        """The first `RESPAWNS_MAX` runs that were made from this one, by creation."""
        ...

    async def session(self, key_or_id: str, *, at: int | None = None) -> Session | None:
        """A session by canonical key or by session id."""
        ...

    def last_seen_session(self, session_key: str) -> Session | None:
        """Return the session as this process saw it last; None if it does not remember it.

        Asks nothing. The record may say otherwise by now, so only use what is checked again under
        the log's lock.
        """
        ...

    async def runs_below(self, session_key: str) -> Sequence[Run]:
        """The runs of every descendant of a session but those that were refused, parents before
        children, siblings in the order in which they were asked for."""
        ...

    async def descendants(self, session_key: str, *, at: int | None = None) -> tuple[int, int]:
        """How many runs below a session are not settled (announced or refused), and how many of
        those are not even over."""
        ...

    async def inbox(self, query: InboxQuery, *, at: int, after: int, limit: int) -> Sequence[Run]:
        """Runs announced in inboxes, by position of the announcement, those behind `after`. One
        whose delivery was parked stands where that was recorded last."""
        ...

    async def lanes(self, *, at: int) -> Sequence[LaneState]:
        """Every lane that has somebody in it."""
        ...

    async def waiting_lanes(self, *, width: int) -> Sequence[WaitingLane]:
        """Return all lanes in which a run waits to be claimed, of this width."""
        ...

    async def changed_streams(
        self,
        *,
        after: int,
        until: int,
        behind: int,
        events_max: int,
        tree: str | None = None,
    ) -> ChangedStreams:
        """Streams, each once, that have their first event behind `after` between `behind` (which is
        not before it) and `until`: of all, or of those whose events are of a tree. At most
        `events_max` events are looked at."""
        ...

    async def states(
        self, run_ids: Sequence[UUID], session_keys: Sequence[str], *, at: Sequence[int]
    ) -> Sequence[StatesAsOf]:
        """Several runs and sessions, as of each of some positions."""
        ...

    async def position_at(self, instant: datetime) -> int:
        """The last position of the last append recorded at or before an instant; 0 before all."""
        ...

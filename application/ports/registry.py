"""The registry of runs and sessions: the newest state, and the state at any position."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol
from uuid import UUID

from domain.run.state import Run
from domain.session.state import Session

RESPAWNS_MAX = 100
"""Number of respawns that are returned with a run. Lists return all of them."""


@dataclass(frozen=True, slots=True)
class StatusRows:
    """Row values that one status selects: stages and, if given, the outcome and whether the run
    waits for others."""

    stages: tuple[str, ...]
    outcome: str | None = None
    waiting: bool | None = None


@dataclass(frozen=True, slots=True)
class LiveRuns:
    """The runs that were requested and not over as of a position."""

    position: int
    run_ids: tuple[UUID, ...]


Comparison = Literal["=", "any of", "begins with", "is or begins with", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class RunCondition:
    """A comparison of a column of run rows with a value.

    Attributes:
        column: A column of `RunRow`; `status`, which is any of several `StatusRows`; or
            `over_position`, which compares the position at which the run was over, if it ever is,
            with that of `LiveRuns`, by `<=` or `>`.
        comparison: The operator. A row without a value in the column does not match.
        value: The value; a tuple if the comparison is `any of`, or `begins with` (any of them). For
            `is or begins with`, a pair: a tuple of values, and one of beginnings.
    """

    column: str
    comparison: Comparison
    value: Any


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Filter for runs whose rows match all conditions."""

    conditions: tuple[RunCondition, ...] = ()

    @classmethod
    def where(cls, **values: Any) -> "RunQuery":
        """Return a query by column values. A tuple matches any of its values."""
        return cls(
            tuple(
                RunCondition(column, "any of" if isinstance(value, tuple) else "=", value)
                for column, value in values.items()
            )
        )

    def value_of(self, column: str) -> Any | None:
        """Return the value that all selected runs have in a column; None if they may differ."""
        values = (
            condition
            for condition in self.conditions
            if (condition.column, condition.comparison) == (column, "=")
        )
        return next((condition.value for condition in values), None)

    def split(self, columns: Container[str]) -> tuple["RunQuery", "RunQuery"]:
        """Return the conditions that an index serves, and all other conditions.

        The first are those on values of the given columns, and those that bound the creation.
        """
        inside, outside = list[RunCondition](), list[RunCondition]()
        for condition in self.conditions:
            by_value = condition.column in columns and condition.comparison in ("=", "any of")
            bounds = condition.column in ("created_position", "over_position")
            (inside if by_value or bounds else outside).append(condition)
        return RunQuery(tuple(inside)), RunQuery(tuple(outside))


@dataclass(frozen=True, slots=True)
class Respawn:
    """A run made from an earlier run, and the session that requested it."""

    run_id: UUID
    requester: str


class WaitingLane(NamedTuple):
    """A lane with a waiting run.

    `is_full` is True if runs hold all of the first `width` places in line. If False, the lane may
    still be full.
    """

    lane: str
    depth: int
    is_full: bool


class LanePlace(NamedTuple):
    """A run in a lane. `holder` is the process that holds its slot, None for a queued run."""

    run_id: UUID
    label: str | None
    requester: str
    holder: str | None


@dataclass(frozen=True, slots=True)
class LaneState:
    """A lane at one depth: the runs with a slot, and the queued runs in order."""

    lane: str
    depth: int
    running: tuple[LanePlace, ...]
    queued: tuple[LanePlace, ...]


@dataclass(frozen=True, slots=True)
class InboxQuery:
    """Filter for announcements.

    Attributes:
        requester: Session key that they went to; None for any.
        is_parked: Only those whose delivery to some webhook is parked.
    """

    requester: str | None = None
    is_parked: bool = False


class ChangedStream(NamedTuple):
    """A stream with events between two positions, and the position of the first of them."""

    stream: str
    position: int


class ChangedStreams(NamedTuple):
    """Changed streams, ordered by their first event. The log was scanned up to `examined`."""

    streams: Sequence[ChangedStream]
    examined: int


class StatesAsOf(NamedTuple):
    """Runs and sessions as of a position; only those that existed."""

    runs: Mapping[UUID, Run]
    sessions: Mapping[str, Session]


class Registry(Protocol):
    """Reader of runs and sessions. `at` is a position; None means the newest state."""

    async def run(self, run_id: UUID, *, at: int | None = None) -> Run | None:
        """Return a run; None if it is not on record at that position."""
        ...

    async def run_at_version(self, run_id: UUID, version: int) -> Run | None:
        """Return a run as of its first `version` events."""
        ...

    async def runs_of_session(self, child_session_key: str, *, limit: int) -> Sequence[Run]:
        """Return the runs of a child session except refused ones, newest first."""
        ...

    async def runs_by_label(self, tree: str, labels: Sequence[str], *, limit: int) -> Sequence[Run]:
        """Return the newest run of each session in a tree that has one of these labels, newest
        first. Refused runs are left out."""
        ...

    async def runs_by_label_prefix(
        self, requester: str, prefix: str, *, limit: int
    ) -> Sequence[Run]:
        """Return the newest run of each session that the requester spawned with a label of this
        prefix.

        Exact matches come first, then the newest. Refused runs are left out.
        """
        ...

    async def runs_by_id_prefix(self, prefix: str, *, limit: int) -> Sequence[Run]:
        """Return runs by a prefix of their id, with or without dashes, ordered by id."""
        ...

    async def runs(
        self,
        query: RunQuery,
        *,
        at: int,
        limit: int,
        after_cursor: int | None = None,
        ascending: bool = False,
    ) -> Sequence[Run]:
        """Return matching runs, ordered by position of creation.

        Args:
            query: The conditions.
            at: Position as of which runs are read.
            limit: Maximum number of runs.
            behind: Cursor: only runs after this position in the order given.
            ascending: Oldest first; by default newest first.
        """
        ...

    async def respawns(self, run_id: UUID, *, at: int) -> Sequence[Respawn]:
        """Return the first `RESPAWNS_MAX` runs made from this run, ordered by creation."""
        ...

    async def session(self, key_or_id: str, *, at: int | None = None) -> Session | None:
        """Return a session by canonical key or session id."""
        ...

    def last_seen_session(self, session_key: str) -> Session | None:
        """Return the session as this process saw it last; None if it is not in memory.

        Makes no query, so the state may be outdated. Use it only for decisions that are checked
        again under the log's lock.
        """
        ...

    async def runs_below(self, session_key: str) -> Sequence[Run]:
        """Return the runs of every descendant of a session except refused ones.

        Parents come before children, siblings in the order of their requests.
        """
        ...

    async def descendants(self, session_key: str, *, at: int | None = None) -> tuple[int, int]:
        """Return how many runs below a session are not settled (announced or refused), and how many
        of those have not ended."""
        ...

    async def inbox(self, query: InboxQuery, *, at: int, after: int, limit: int) -> Sequence[Run]:
        """Return announced runs after the cursor `after`, ordered by position of the announcement.

        An announcement with a parked delivery is ordered by the position where it was last parked.
        """
        ...

    async def lanes(self, *, at: int) -> Sequence[LaneState]:
        """Return every lane that has running or queued runs."""
        ...

    async def waiting_lanes(self, *, width: int) -> Sequence[WaitingLane]:
        """Return all lanes in which a run waits to be claimed. `width` is the number of slots of
        each."""
        ...

    async def changed_streams(
        self,
        *,
        after: int,
        until: int,
        after_cursor: int,
        events_max: int,
        tree: str | None = None,
    ) -> ChangedStreams:
        """Return the streams whose first change since `after` is at a position in (`after_cursor`,
        `until`].

        Each stream is returned once.

        Args:
            after: Start of the comparison.
            until: Last position to scan.
            behind: Cursor; not before `after`.
            events_max: Maximum number of events to scan.
            tree: Root session key, to take only events of that tree.
        """
        ...

    async def states(
        self, run_ids: Sequence[UUID], session_keys: Sequence[str], *, at: Sequence[int]
    ) -> Sequence[StatesAsOf]:
        """Return several runs and sessions as of each position."""
        ...

    async def position_at(self, instant: datetime) -> int:
        """Return the last position of the last append recorded at or before an instant; 0 if there
        is none."""
        ...

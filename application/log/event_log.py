"""The log as use cases see it: commands decided in the writer, and events read by position.

A caller does not hand over finished events. It names the streams it needs and a pure decision; the
writer loads their state under the append lock, decides, and records events, rows, contents and the
idempotency record in one transaction. So a decision always sees the newest record, a cap is exact,
and a refusal or a conflict is the caller's own.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar
from uuid import UUID

from application.log.envelope import Provenance, RecordedEvent
from application.log.view import View
from domain.event_types import AnyEvent
from domain.run.state import Run
from domain.session.state import Session
from domain.values.record import ContentRef
from domain.values.refusals import Rejected

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Change = tuple[str, AnyEvent]
"""A stream and the event to append to it."""


class Content(NamedTuple):
    """A free text to keep beside the log, under the session that owns it."""

    ref: ContentRef
    session_id: UUID
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class ContentKey:
    """A session's key for the keyed hashes of its contents."""

    session_id: UUID
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file that a request brought, kept until it is written: the `ordinal`-th of its run, from
    0 on. It stands in no event."""

    run_id: UUID
    ordinal: int
    body: bytes = field(repr=False)


class FinishedTranscript(NamedTuple):
    """The transcript that an append finishes.

    Attributes:
        run_id: Its run.
        last_entry: The number of the last entry that the decision knows of.
        is_written_on: Whether the append writes the entry behind that one. Then its key refuses
            the append if there is such an entry, and nobody need look.
    """

    run_id: UUID
    last_entry: int
    is_written_on: bool


class TranscriptRows(NamedTuple):
    """Entries of a run's transcript to write in an append, from number `first` on; each with its
    instant, its kind and the text of its row."""

    run_id: UUID
    first: int
    instants: Sequence[datetime]
    kinds: Sequence[str]
    bodies: Sequence[str]


@dataclass(frozen=True, slots=True)
class LaneQuery:
    """Ask for the state of a lane under the lock: how many run, who is next (at most `take`)."""

    lane: str
    depth: int
    take: int


class LaneFacts(NamedTuple):
    """The state of a lane.

    Attributes:
        running: The number of runs that hold a slot now.
        next: Queued runs, first in line first.
        may_have_more: Whether others may wait behind those.
    """

    running: int
    next: tuple[Run, ...]
    may_have_more: bool = False


@dataclass(frozen=True, slots=True)
class TreeQuery:
    """Ask for what of a tree waits, or may come to wait, for other runs, and for the runs that
    `linked_runs` names of those: under the lock."""

    root: str


@dataclass(frozen=True, slots=True)
class Reservation:
    """An idempotency key to reserve in the same append. `fingerprint` tells the body."""

    token: str
    method: str
    path: str
    key: str
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """What the caller was told, kept for a repeat of its request: a kind that the door knows how
    to say, and what goes with it."""

    kind: str
    body: dict[str, object]

    @classmethod
    def of(cls, kind: str, view: View) -> Self:
        """Return a view as JSON."""
        return cls(kind, view.model_dump(mode="json"))


@dataclass(frozen=True, slots=True)
class Reserved:
    """A reservation on record; `answer` is None while its request is still under way."""

    fingerprint: bytes
    run_id: UUID | None
    answer: StoredAnswer | None


class AlreadyReserved(Rejected):
    """The idempotency key is taken: nothing was decided."""

    def __init__(self, reserved: Reserved) -> None:
        super().__init__("the idempotency key was used before")
        self.reserved = reserved


class World(NamedTuple):
    """What is on record about the streams a submission named; absent when never recorded. `tree`
    are the runs with dependencies that are prepared or wait, of the tree that it named.
    `last_entries` has the number of the last entry of the transcript that it named, if there is
    one; nothing is added to it until the append."""

    runs: Mapping[UUID, Run]
    sessions: Mapping[str, Session]
    now: datetime
    lane: LaneFacts | None = None
    config_version: int = 0
    tree: Sequence[Run] = ()
    last_entries: Mapping[UUID, int] = MappingProxyType({})


class Decision(NamedTuple, Generic[T_co]):
    """What to record. `answer` completes the submission's own reservation; without it that stays
    open under `reserve_run`. `run_answer` completes the one that a run's spawn has left open.
    `following` is what was decided with it, and is recorded behind it in the same transaction."""

    result: T_co
    changes: Sequence[Change] = ()
    contents: Sequence[Content] = ()
    keys: Sequence[ContentKey] = ()
    answer: StoredAnswer | None = None
    run_answer: tuple[UUID, StoredAnswer] | None = None
    reserve_run: UUID | None = None
    staged: Sequence[StagedFile] = ()
    entries: Sequence[TranscriptRows] = ()
    following: "Sequence[Following]" = ()


class Following(NamedTuple):
    """A part of a decision that is an append of its own on record, with an actor of its own. Only
    what it records is taken from its decision: it has no caller, and nothing follows it."""

    command_id: UUID
    provenance: Provenance
    decision: Decision[None]
    about: frozenset[UUID] = frozenset()


class Submission(NamedTuple, Generic[T]):
    """A command for the writer. `decide` must be pure and may raise `Rejected`.

    `about` are the runs that it is about, when they are several: an event of a session that names
    one of them is recorded as being about that one. `minted` are streams whose ids were made for
    it: none of them can be on record. `unseen` are keys of sessions of which this process
    remembers nothing: most of them are not on record. `transcript` is what it finishes.
    `follow_ups` are decided behind it in the same transaction, each on the state that the one
    before left, and each an append of its own on record; one that raises ends the row of them, and
    nobody is told.
    """

    command_id: UUID
    streams: tuple[str, ...]
    decide: Callable[[World], Decision[T]]
    provenance: Provenance
    lane: LaneQuery | None = None
    tree: TreeQuery | None = None
    reservation: Reservation | None = None
    about: frozenset[UUID] = frozenset()
    transcript: FinishedTranscript | None = None
    minted: Sequence[str] = ()
    unseen: Sequence[str] = ()
    follow_ups: "Sequence[Submission[Any]]" = ()


def with_follow_ups(submissions: Sequence[Submission[Any]]) -> list[Submission[Any]]:
    """All of them, each with those that follow it."""
    return [one for each in submissions for one in (each, *with_follow_ups(each.follow_ups))]


class Appended(NamedTuple, Generic[T_co]):
    """What came of a submission: the decision's result, the position it is true at, and the
    state after it, and after what followed it, of the streams that were named or changed."""

    result: T_co
    position: int
    runs: Mapping[UUID, Run]
    sessions: Mapping[str, Session]


class LogUnavailable(Exception):
    """The log cannot be reached now. Nothing is known to be recorded; ask again."""


class EventLog(Protocol):
    """One log."""

    @property
    def log_id(self) -> UUID:
        """Which log this is; it never changes."""
        ...

    async def submit(self, submission: Submission[T]) -> Appended[T]:
        """Decide and record. Raises what `decide` raised, `AlreadyReserved`, `LogUnavailable`."""
        ...

    async def head(self) -> int:
        """The last position; 0 for an empty log."""
        ...

    async def read(
        self,
        *,
        after: int = 0,
        limit: int,
        types: Sequence[str] = (),
        run_id: UUID | None = None,
        correlations: Sequence[str] | None = None,
        actor: str | None = None,
        until: int | None = None,
        newest_first: bool = False,
    ) -> Sequence[RecordedEvent]:
        """Events in order of position, those behind `after` and not behind `until`, at most
        `limit`: the first ones, or the last ones in the opposite order. `actor` is a kind, the id
        of a token or the key of a session that acted."""
        ...

    async def first(self, event_type: str, run_id: UUID) -> RecordedEvent | None:
        """The first event of a type of a run."""
        ...

    async def queued_message(self, run_id: UUID) -> RecordedEvent | None:
        """Return the event by which the message that is to become this run began to wait, or None
        if it never waited."""
        ...

    async def read_streams(
        self, streams: Sequence[str], *, types: Sequence[str] = (), until: int
    ) -> Sequence[RecordedEvent]:
        """All events of these streams up to a position, in order of position."""
        ...

    async def recorded_at(self, position: int) -> datetime | None:
        """When the event at a position was recorded; None when there is none there."""
        ...

    def now(self) -> datetime:
        """Return the time of the log's own clock, which every instant on record is by, at no cost.
        Whatever is due, or long ago, is so by this clock and not by that of the machine."""
        ...

    def known_instant(self, position: int) -> datetime | None:
        """The same where it is in memory, at no cost; None where it has to be asked for."""
        ...

    async def version_of(self, stream: str, *, at: int) -> int:
        """How many events of a stream stand up to position `at`; 0 for none. What it costs does not
        grow with how many there are."""
        ...

    async def event_of(self, stream: str, version: int) -> RecordedEvent | None:
        """One event of a stream, by its version from 1 on; None for one that is not on record."""
        ...

    async def newest_of_stream(
        self, stream: str, *, version_max: int | None = None, limit: int
    ) -> Sequence[RecordedEvent]:
        """Events of one stream, the newest first: those up to and with `version_max`, at most
        `limit`."""
        ...


class Tail(Protocol):
    """Follows the log as it grows; shared by everything in the process that waits."""

    @property
    def position(self) -> int:
        """The last position seen."""
        ...

    def newest(self, run_id: UUID) -> Run | None:
        """The run as it is at `position`; None when it is not known here."""
        ...

    def end_since(self, moment: float) -> int | None:
        """Return a position seen here that was the end of the log at `moment` of the monotonic
        clock, or later; None if the database has to be asked."""
        ...

    async def changed(
        self,
        run_ids: Collection[UUID],
        *,
        after: int,
        timeout_seconds: float,
        types: Collection[str] = (),
        stopped: "asyncio.Future[None] | None" = None,
    ) -> bool:
        """Wait for an event behind `after`, of one of the runs and of one of the types, if any are
        given. Return False on timeout, or as soon as `stopped` is done."""
        ...

    def follow(self, *, after: int) -> AsyncIterator[Sequence[RecordedEvent]]:
        """Yield every event behind `after`, for ever; those that are there together."""
        ...

"""The log as use cases see it: submit decisions, and read events by position.

A caller names the streams that it needs and passes a pure decision function, not finished events.
The writer loads the state of those streams under the append lock and decides. It records events,
rows, contents and the idempotency record in one transaction. So a decision always sees the newest
record, caps are exact, and the caller receives its own refusal or conflict.
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
"""A stream, and the event to append to it."""


class Content(NamedTuple):
    """A free text to store beside the log, owned by a session."""

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
    """File number `ordinal` (from 0) of a run's request, stored until it is written. It is in no
    event."""

    run_id: UUID
    ordinal: int
    body: bytes = field(repr=False)


class FinishedTranscript(NamedTuple):
    """The transcript that an append finishes.

    Attributes:
        run_id: Its run.
        last_entry: Number of the last entry that the decision knows.
        is_written_on: Whether the append writes the next entry. If so, no check is needed: the
            primary key rejects the append if that entry exists.
    """

    run_id: UUID
    last_entry: int
    is_written_on: bool


class TranscriptRows(NamedTuple):
    """Entries of a run's transcript to write in an append, from number `first` on.

    Each has an instant, a kind and a row text.
    """

    run_id: UUID
    first: int
    instants: Sequence[datetime]
    kinds: Sequence[str]
    bodies: Sequence[str]


@dataclass(frozen=True, slots=True)
class LaneQuery:
    """Query for the state of a lane under the lock, with at most `take` queued runs."""

    lane: str
    depth: int
    take: int


class LaneFacts(NamedTuple):
    """The state of a lane.

    Attributes:
        running: Number of runs that hold a slot.
        next: Queued runs, first in line first.
        may_have_more: Whether more runs may be queued after those.
    """

    running: int
    next: tuple[Run, ...]
    may_have_more: bool = False


@dataclass(frozen=True, slots=True)
class TreeQuery:
    """Query, under the lock, for the runs of a tree that wait for others or may come to.

    The runs that `linked_runs` names of those are included.
    """

    root: str


@dataclass(frozen=True, slots=True)
class Reservation:
    """An idempotency key to reserve in the append. `fingerprint` identifies the request body."""

    token: str
    method: str
    path: str
    key: str
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer stored for repeats of its request: a kind that inbound adapters can render, and its
    JSON body."""

    kind: str
    body: dict[str, object]

    @classmethod
    def of(cls, kind: str, view: View) -> Self:
        """Return the stored form of a view."""
        return cls(kind, view.model_dump(mode="json"))


@dataclass(frozen=True, slots=True)
class Reserved:
    """A recorded reservation. `answer` is None while its request is in progress."""

    fingerprint: bytes
    run_id: UUID | None
    answer: StoredAnswer | None


class AlreadyReserved(Rejected):
    """The idempotency key was used before, so nothing was decided."""

    def __init__(self, reserved: Reserved) -> None:
        super().__init__("the idempotency key was used before")
        self.reserved = reserved


class DecisionContext(NamedTuple):
    """The recorded state of the streams that a submission named. Unknown streams are absent.

    Attributes:
        tree: Runs with dependencies in the named tree that are in preparation or waiting.
        last_entries: Number of the last transcript entry of the named transcript, if it has one. No
            entry is added before the append.
    """

    runs: Mapping[UUID, Run]
    sessions: Mapping[str, Session]
    now: datetime
    lane: LaneFacts | None = None
    config_version: int = 0
    tree: Sequence[Run] = ()
    last_entries: Mapping[UUID, int] = MappingProxyType({})


class Decision(NamedTuple, Generic[T_co]):
    """The events and texts to record, and the answers to store.

    Attributes:
        answer: Completes the submission's own reservation. Without it, the reservation stays open
            under `reserve_run`.
        run_answer: Completes the reservation that a run's spawn left open.
        following: Further appends to record after this one, in the same transaction.
    """

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
    """A part of a decision that is recorded as an append with its own actor.

    Only the records of its decision are used: it has no caller, and nothing can follow it.
    """

    command_id: UUID
    provenance: Provenance
    decision: Decision[None]
    about: frozenset[UUID] = frozenset()


class Submission(NamedTuple, Generic[T]):
    """A command for the writer. `decide` must be pure and may raise `Rejected`.

    Attributes:
        about: The runs that it is about, if there are several. A session event that names one of
            them is recorded as being about that run.
        transcript: The transcript that it finishes.
        minted: Streams with new ids, which cannot be on record.
        unseen: Session keys that this process does not remember. Most of them are not on record.
        follow_ups: Submissions decided after it in the same transaction, each on the state that its
            predecessor left, each recorded as an append. If one raises, the rest is skipped
            silently.
    """

    command_id: UUID
    streams: tuple[str, ...]
    decide: Callable[[DecisionContext], Decision[T]]
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
    """Return all submissions, each followed by its follow-ups."""
    return [
        member for first in submissions for member in (first, *with_follow_ups(first.follow_ups))
    ]


class Appended(NamedTuple, Generic[T_co]):
    """The result of a submission.

    Attributes:
        result: The result of the decision.
        position: The position at which it is true.
        runs: Runs that were named or changed, after this append and its follow-ups.
        sessions: Sessions likewise.
    """

    result: T_co
    position: int
    runs: Mapping[UUID, Run]
    sessions: Mapping[str, Session]


class LogUnavailableError(Exception):
    """The log cannot be reached. Nothing is known to be recorded; retry."""


class EventLog(Protocol):
    @property
    def log_id(self) -> UUID:
        """Return the permanent id of this log."""
        ...

    async def submit(self, submission: Submission[T]) -> Appended[T]:
        """Decide and record a submission.

        Raises:
            AlreadyReserved: If the idempotency key was used before.
            LogUnavailableError: If the log cannot be reached.
            Rejected: As raised by `decide`.
        """
        ...

    async def head(self) -> int:
        """Return the last position; 0 for an empty log."""
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
        """Return events after `after` up to `until`, in order of position, at most `limit`.

        With `newest_first`, return the last ones in reverse order. `actor` is a kind, the id of a
        token or the key of a session that acted.
        """
        ...

    async def first(self, event_type: str, run_id: UUID) -> RecordedEvent | None:
        """Return the first event of a type about a run."""
        ...

    async def queued_message(self, run_id: UUID) -> RecordedEvent | None:
        """Return the event that queued the message which this run continues with; None if it was
        not queued."""
        ...

    async def read_streams(
        self, streams: Sequence[str], *, types: Sequence[str] = (), until: int
    ) -> Sequence[RecordedEvent]:
        """Return all events of these streams up to a position, in order of position."""
        ...

    async def recorded_at(self, position: int) -> datetime | None:
        """Return when the event at a position was recorded; None if there is none."""
        ...

    def now(self) -> datetime:
        """Return the time of the log's own clock, without a query.

        Every recorded instant is by this clock. Use it, not the machine's clock, to decide if
        something is due.
        """
        ...

    def known_instant(self, position: int) -> datetime | None:
        """Return when an event was recorded if that is in memory; None if it must be queried."""
        ...

    async def version_of(self, stream: str, *, at: int) -> int:
        """Return the number of events of a stream up to position `at`.

        The cost does not depend on that number.
        """
        ...

    async def event_of(self, stream: str, version: int) -> RecordedEvent | None:
        """Return an event of a stream by its version, from 1 on; None if it is not on record."""
        ...

    async def newest_of_stream(
        self, stream: str, *, version_max: int | None = None, limit: int
    ) -> Sequence[RecordedEvent]:
        """Return events of a stream, newest first: up to `version_max`, at most `limit`."""
        ...


class Tail(Protocol):
    """Reader that follows the log as it grows. One tail serves all waiters of a process."""

    @property
    def position(self) -> int:
        """Return the last position seen."""
        ...

    def newest(self, run_id: UUID) -> Run | None:
        """Return the run as of `position`; None if it is not in memory."""
        ...

    def end_since(self, moment: float) -> int | None:
        """Return a seen position that was the end of the log at `moment` of the monotonic clock, or
        later.

        None if the database has to be queried.
        """
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
        """Wait for an event after `after` about one of the runs and, if given, of one of the types.

        Return False on timeout, or as soon as `stopped` is done.
        """
        ...

    def follow(self, *, after: int) -> AsyncIterator[Sequence[RecordedEvent]]:
        """Yield every event after `after`, forever, in batches of those available."""
        ...

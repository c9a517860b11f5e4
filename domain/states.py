"""Fold of events into the states of runs and sessions, shared by every reader.

Only this module calls `evolve`. The writer, rebuilds, verification, import, time travel, search and
what-if all take their states from here.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Generic, NamedTuple, Protocol, TypeVar, cast
from uuid import UUID

from domain.event_types import AnyEvent, ConfigurationActivated
from domain.run.events import RunEvent
from domain.run.evolve import evolve as evolve_run
from domain.run.state import Run
from domain.session.events import SessionEvent
from domain.session.state import Session
from domain.session.state import evolve as evolve_session
from domain.values.record import (
    CONFIG_STREAM,
    NAMES_MAX,
    Stamp,
    run_id_of,
    run_stream,
    session_key_of,
    session_stream,
)
from domain.values.refusals import CorruptHistoryError

STATES_MAX = 5_000
"""Maximum number of runs, and of sessions, kept in memory between two pages of events."""

State = Run | Session


def stream_of(state: State) -> str:
    """Return the stream name of a run or session."""
    if isinstance(state, Run):
        return run_stream(state.run_id)
    return session_stream(state.session_key)


class Occurrence(Protocol):
    """An event in a stream, with the metadata that the log added to it."""

    @property
    def stream(self) -> str: ...

    @property
    def event(self) -> AnyEvent: ...

    @property
    def stamp(self) -> Stamp: ...


class StreamEvent(NamedTuple):
    """Minimal `Occurrence`: stream, event and stamp."""

    stream: str
    event: AnyEvent
    stamp: Stamp


AnyOccurrence = TypeVar("AnyOccurrence", bound=Occurrence)


class Step(NamedTuple, Generic[AnyOccurrence]):
    """An event, with the state of its run or session before and after it.

    Attributes:
        at: The event as it was passed in.
        before: State before the event; None for the first event of a stream.
        after: State after the event. Both are None for an event of neither a run nor a session.
    """

    at: AnyOccurrence
    before: State | None
    after: State | None

    @property
    def run(self) -> Run:
        """Return the run after the event. Only valid for events of a run's stream."""
        return cast("Run", self.after)


class VersionGapError(CorruptHistoryError):
    """An event is not the next version of its stream."""

    def __init__(self, stream: str, version: int, last: int) -> None:
        super().__init__(f"version {version} of {stream[:600]} follows version {last}")


class MissingStates(NamedTuple):
    """Runs and sessions whose states must be loaded before the next page."""

    runs: Sequence[UUID]
    sessions: Sequence[str]


class States:
    """In-memory states of runs and sessions, by id and key.

    `shrink` keeps at most `states_max` of each kind.
    """

    def __init__(self, states: Iterable[State] = (), *, states_max: int = STATES_MAX) -> None:
        self.runs: dict[UUID, Run] = {}
        self.sessions: dict[str, Session] = {}
        self._states_max = states_max
        self.put(states)

    def put(self, states: Iterable[State]) -> None:
        """Add these states, replacing any with the same id or key."""
        for state in states:
            if isinstance(state, Run):
                self.runs[state.run_id] = state
            else:
                self.sessions[state.session_key] = state

    def of(self, stream: str) -> State | None:
        """Return the state of a stream, or None if it is not in memory."""
        run_id = _run_of(stream)
        if run_id is not None:
            return self.runs.get(run_id)
        return self.sessions.get(session_key_of(stream) or "")

    def take(self, stream: str, event: AnyEvent, stamp: Stamp) -> tuple[State | None, State | None]:
        """Apply the next event of a stream and return the states before and after it.

        Raises:
            VersionGapError: The event is not the next version of its stream.
            CorruptHistoryError: The event does not fit the state before it, or does not belong in
                this stream.
        """
        run_id = _run_of(stream)
        if run_id is not None:
            before = self.runs.get(run_id)
            last = before.version if before is not None else 0
            if stamp.version != last + 1:
                raise VersionGapError(stream, stamp.version, last)
            run = evolve_run(before, cast("RunEvent", event), stamp)
            if before is None and run.run_id != run_id:
                raise CorruptHistoryError(f"{stream} is of run {run.run_id}")
            self.runs[run_id] = run
            return before, run
        key = session_key_of(stream)
        if key is not None:
            known = self.sessions.get(key)
            last = known.version if known is not None else 0
            if stamp.version != last + 1:
                raise VersionGapError(stream, stamp.version, last)
            session = evolve_session(known, cast("SessionEvent", event), stamp)
            if known is None and session.session_key != key:
                raise CorruptHistoryError(f"{stream} is of session {session.session_key}")
            self.sessions[key] = session
            return known, session
        if stream != CONFIG_STREAM or type(event) is not ConfigurationActivated:
            raise CorruptHistoryError(f"{type(event).__name__} has no place in {stream}")
        return None, None

    def missing(self, page: Iterable[tuple[str, int]]) -> MissingStates:
        """Return the states to load with `put` before a page of events is applied.

        States that are already in memory are marked as recently used.

        Args:
            page: Stream and version of each event of the page.
        """
        first: dict[str, int] = {}
        for stream, version in page:
            first.setdefault(stream, version)
        runs: list[UUID] = []
        sessions: list[str] = []
        for stream, version in first.items():
            run_id, key = _run_of(stream), session_key_of(stream)
            if run_id is not None:
                run = self.runs.pop(run_id, None)
                if run is not None:
                    self.runs[run_id] = run
                elif version > 1:
                    runs.append(run_id)
            elif key is not None:
                session = self.sessions.pop(key, None)
                if session is not None:
                    self.sessions[key] = session
                elif version > 1:
                    sessions.append(key)
        return MissingStates(runs, sessions)

    def shrink(self) -> list[State]:
        """Evict the least recently used states beyond `states_max`, and return them."""
        # Dicts keep insertion order, and `missing` re-inserts each state that is used.
        run_ids = list(islice(self.runs, max(0, len(self.runs) - self._states_max)))
        keys = list(islice(self.sessions, max(0, len(self.sessions) - self._states_max)))
        return [*map(self.runs.pop, run_ids), *map(self.sessions.pop, keys)]


def states(
    events: Iterable[AnyOccurrence], memory: States | None = None
) -> Iterator[Step[AnyOccurrence]]:
    """Yield each event with the state of its run or session before and after it.

    Args:
        events: Events in log order.
        memory: States before the first event; updated in place. Without it, `events` must begin at
            the first version of each stream.

    Raises:
        CorruptHistoryError: An event does not fit the state before it.
    """
    memory = States() if memory is None else memory
    for occurrence in events:
        yield Step(occurrence, *memory.take(occurrence.stream, occurrence.event, occurrence.stamp))


@lru_cache(maxsize=NAMES_MAX)
def _run_of(stream: str) -> UUID | None:
    """Return the run id of a stream.

    None if the stream is not a run's, or spells the id in a non-canonical way.
    """
    try:
        run_id = run_id_of(stream)
    except ValueError:
        return None
    return run_id if run_id is not None and stream == run_stream(run_id) else None

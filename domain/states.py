"""The one fold: events carry runs and sessions from state to state.

Nothing else calls `evolve`. The writer, a rebuild, a verification, an import, a look back, a search
and a what-if take their states from here.
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
from domain.values.refusals import CorruptHistory

STATES_MAX = 5_000
"""How many runs, and how many sessions, stay in memory from one page of events to the next."""

State = Run | Session


def stream_of(state: State) -> str:
    """The stream of a run or session."""
    if isinstance(state, Run):
        return run_stream(state.run_id)
    return session_stream(state.session_key)


class Occurrence(Protocol):
    """An event of a stream, and what the log has added to it."""

    @property
    def stream(self) -> str: ...

    @property
    def event(self) -> AnyEvent: ...

    @property
    def stamp(self) -> Stamp: ...


class StreamEvent(NamedTuple):
    """An `Occurrence` and nothing beside it."""

    stream: str
    event: AnyEvent
    stamp: Stamp


AnyOccurrence = TypeVar("AnyOccurrence", bound=Occurrence)


class Step(NamedTuple, Generic[AnyOccurrence]):
    """An event, and the state of its run or session before and after it.

    `before` is None for the first event of a stream; both are None for an event of neither.
    """

    at: AnyOccurrence
    before: State | None
    after: State | None

    @property
    def run(self) -> Run:
        """The run after an event of a run's stream."""
        return cast("Run", self.after)


class VersionGap(CorruptHistory):
    """An event is not the next one of its stream."""

    def __init__(self, stream: str, version: int, last: int) -> None:
        super().__init__(f"version {version} of {stream[:600]} follows version {last}")


class MissingStates(NamedTuple):
    """The runs and sessions whose states are needed and are not in memory."""

    runs: Sequence[UUID]
    sessions: Sequence[str]


class States:
    """The states of runs and sessions, by their ids and keys.

    `states_max` is how many of each kind `shrink` leaves in memory.
    """

    def __init__(self, states: Iterable[State] = (), *, states_max: int = STATES_MAX) -> None:
        self.runs: dict[UUID, Run] = {}
        self.sessions: dict[str, Session] = {}
        self._states_max = states_max
        self.put(states)

    def put(self, states: Iterable[State]) -> None:
        """Have these states in memory."""
        for state in states:
            if isinstance(state, Run):
                self.runs[state.run_id] = state
            else:
                self.sessions[state.session_key] = state

    def of(self, stream: str) -> State | None:
        """Return the state of a stream; None if it is not in memory."""
        run_id = _run_of(stream)
        if run_id is not None:
            return self.runs.get(run_id)
        return self.sessions.get(session_key_of(stream) or "")

    def take(self, stream: str, event: AnyEvent, stamp: Stamp) -> tuple[State | None, State | None]:
        """Take the next event in; return the state before and after it.

        Raises:
            VersionGap: It is not the next event of its stream.
            CorruptHistory: It does not fit the state before it, or has no place in its stream.
        """
        run_id = _run_of(stream)
        if run_id is not None:
            before = self.runs.get(run_id)
            last = before.version if before is not None else 0
            if stamp.version != last + 1:
                raise VersionGap(stream, stamp.version, last)
            run = evolve_run(before, cast("RunEvent", event), stamp)
            if before is None and run.run_id != run_id:
                raise CorruptHistory(f"{stream} is of run {run.run_id}")
            self.runs[run_id] = run
            return before, run
        key = session_key_of(stream)
        if key is not None:
            known = self.sessions.get(key)
            last = known.version if known is not None else 0
            if stamp.version != last + 1:
                raise VersionGap(stream, stamp.version, last)
            session = evolve_session(known, cast("SessionEvent", event), stamp)
            if known is None and session.session_key != key:
                raise CorruptHistory(f"{stream} is of session {session.session_key}")
            self.sessions[key] = session
            return known, session
        if stream != CONFIG_STREAM or type(event) is not ConfigurationActivated:
            raise CorruptHistory(f"{type(event).__name__} has no place in {stream}")
        return None, None

    def missing(self, page: Iterable[tuple[str, int]]) -> MissingStates:
        """Return the states that must be put in before a page of events is taken in.

        `page` has the stream and the version of each. States that it needs count as used now.
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
        """Forget the states that were used longest ago, but `states_max`, and return them."""
        # A dict is in the order in which `missing` and `take` put in what is used.
        run_ids = list(islice(self.runs, max(0, len(self.runs) - self._states_max)))
        keys = list(islice(self.sessions, max(0, len(self.sessions) - self._states_max)))
        return [*map(self.runs.pop, run_ids), *map(self.sessions.pop, keys)]


def states(
    events: Iterable[AnyOccurrence], memory: States | None = None
) -> Iterator[Step[AnyOccurrence]]:
    """Yield each event with the state of its run or session before and after it.

    `memory` has the states in front of the first event, and takes in those behind each; without it
    the events begin their streams.

    Raises:
        CorruptHistory: An event does not fit what is in front of it.
    """
    memory = States() if memory is None else memory
    for one in events:
        yield Step(one, *memory.take(one.stream, one.event, one.stamp))


@lru_cache(maxsize=NAMES_MAX)
def _run_of(stream: str) -> UUID | None:
    """The run of a stream; None for any other stream, and for another spelling of the id."""
    try:
        run_id = run_id_of(stream)
    except ValueError:
        return None
    return run_id if run_id is not None and stream == run_stream(run_id) else None

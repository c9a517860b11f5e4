"""The states of runs and sessions while the log is looked through: folded from events, and looked
up where they are not in memory."""

import asyncio
from collections.abc import Collection, Sequence
from typing import NamedTuple, cast, get_args
from uuid import UUID

from application.log.envelope import RecordedEvent
from application.ports.registry import Registry
from domain.run.events import RunEvent
from domain.run.evolve import evolve as evolve_run
from domain.run.state import Run
from domain.session.events import SessionEvent
from domain.session.state import Session
from domain.session.state import evolve as evolve_session
from domain.values.record import run_id_of, session_key_of

STATES_MAX = 10_000
"""How many states are in memory between two pages of events."""

_RUN_EVENTS = frozenset(get_args(RunEvent))
_SESSION_EVENTS = frozenset(get_args(SessionEvent))


class RunStep(NamedTuple):
    """A run before and after an event of it; None before its first one."""

    before: Run | None
    after: Run


class SessionStep(NamedTuple):
    """A session before and after an event of it; None before its first one."""

    before: Session | None
    after: Session


class FoldedStates:
    """Folds events in their order. Memory is bounded: what has not been needed for the longest
    time is forgotten, and looked up again."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._runs: dict[UUID, Run] = {}
        self._sessions: dict[str, Session] = {}

    async def load(self, events: Sequence[RecordedEvent], after: int) -> None:
        """Have in memory, as of the position `after`, what these events go on from; they are all
        that is wanted behind it, in order."""
        for states in (self._runs, self._sessions):
            _forget(states)
        first: dict[str, int] = {}
        for one in events:
            first.setdefault(one.envelope.stream, one.envelope.version)
        # An event that is not the first of its stream goes on from a state.
        gone_on = [stream for stream, version in first.items() if version > 1]
        runs = [one for one in map(run_id_of, gone_on) if one is not None]
        keys = [one for one in map(session_key_of, gone_on) if one is not None]
        await asyncio.gather(
            *(self._load_run(one, after) for one in runs if one not in self._runs),
            *(self._load_session(one, after) for one in keys if one not in self._sessions),
        )

    async def _load_run(self, run_id: UUID, at: int) -> None:
        run = await self._registry.run(run_id, at=at)
        if run is not None:
            self._runs[run_id] = run

    async def _load_session(self, key: str, at: int) -> None:
        session = await self._registry.session(key, at=at)
        if session is not None:
            self._sessions[key] = session

    def apply(self, recorded: RecordedEvent) -> RunStep | SessionStep | None:
        """Take an event in. None for one of neither a run nor a session."""
        stream, event, stamp = recorded.envelope.stream, recorded.event, recorded.envelope.stamp
        if type(event) in _RUN_EVENTS:
            run_id = run_id_of(stream)
            assert run_id is not None
            known = self._runs.pop(run_id, None)
            run = evolve_run(known, cast("RunEvent", event), stamp)
            # Put in at the end: what was used last is forgotten last.
            self._runs[run_id] = run
            return RunStep(known, run)
        if type(event) in _SESSION_EVENTS:
            key = session_key_of(stream)
            assert key is not None
            before = self._sessions.pop(key, None)
            session = evolve_session(before, cast("SessionEvent", event), stamp)
            self._sessions[key] = session
            return SessionStep(before, session)
        return None


def type_names(types: Collection[type]) -> tuple[str, ...]:
    """The names by which the log knows events."""
    return tuple(sorted(one.__name__ for one in types))


def _forget(states: dict[UUID, Run] | dict[str, Session]) -> None:
    for key in list(states)[: max(0, len(states) - STATES_MAX)]:
        del states[key]  # type: ignore[arg-type]

"""Stories of aggregates: given these events, a command records these events.

Events and histories of runs are in `tests.support.builders.run_histories`, commands in
`tests.support.builders.run_commands`.
"""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar
from uuid import NAMESPACE_URL, UUID, uuid5

import pytest

from domain.run import decide as run_rules
from domain.run.commands import RunCommand
from domain.run.events import RunEvent, SpawnRequested
from domain.run.evolve import evolve as evolve_run
from domain.run.facts import AdmissionFacts, Plan, Requester, SpawnOptions
from domain.run.state import Run
from domain.session import decide as session_rules
from domain.session import state as session_state
from domain.session.decide import SessionCommand
from domain.session.events import SessionEvent, SessionObserved
from domain.session.state import Session
from domain.values.record import ContentRef, Stamp
from domain.values.refusals import Rejected
from tests.support.builders.facts import fact_of

S = TypeVar("S")
E = TypeVar("E")
C = TypeVar("C")
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ROOT = "agent:main:main"
CHILD = "agent:main:subagent:00000000-0000-4000-8000-000000000001"


def at(position: int) -> datetime:
    return START + timedelta(seconds=position)


def stamp(position: int, version: int | None = None) -> Stamp:
    """Return the stamp of an event; each position is a second after the previous one."""
    return Stamp(position, position if version is None else version, at(position))


class Told(Generic[S, E, C]):
    """Result of a command."""

    def __init__(self, story: "Story[S, E, C]", ask: Callable[[], tuple[E, ...]]) -> None:
        self._story = story
        self._ask = ask

    def then(self, *expected: E | type[E]) -> "Story[S, E, C]":
        """Assert that exactly these events are recorded; a class matches any of its events. They
        must be recordable.
        """
        events = self._ask()
        assert len(events) == len(expected), f"recorded {events}, expected {expected}"
        for event, wanted in zip(events, expected, strict=True):
            if isinstance(wanted, type):
                assert type(event) is wanted
            else:
                assert event == wanted
        return self._story.followed_by(events)

    def after(self) -> "Story[S, E, C]":
        """Return the story with the recorded events; raise a rejection."""
        return self._story.followed_by(self._ask())

    def refused(self, error: type[Rejected], *words: str) -> None:
        with pytest.raises(Rejected) as caught:
            self._ask()
        assert type(caught.value) is error
        for word in words:
            assert word in str(caught.value)


class Story(Generic[S, E, C]):
    """The events of one stream so far."""

    def __init__(
        self,
        evolve: Callable[[S | None, E, Stamp], S],
        decide: Callable[[S | None, C], tuple[E, ...]],
        events: tuple[E, ...],
    ) -> None:
        self.evolve = evolve
        self.decide = decide
        self.events = events

    @property
    def state(self) -> S | None:
        """Return the fold of the events; event `n` has position and version `n`."""
        state: S | None = None
        for number, event in enumerate(self.events, start=1):
            state = self.evolve(state, event, stamp(number))
        return state

    def followed_by(self, events: tuple[E, ...]) -> "Story[S, E, C]":
        """Return the story with these events appended; they must be recordable."""
        after = Story(self.evolve, self.decide, (*self.events, *events))
        assert after.state is not None
        return after

    def when(self, command: C) -> Told[S, E, C]:
        return Told(self, lambda: self.decide(self.state, command))


RunStory = Story[Run, RunEvent, RunCommand]


def _decide_run(run: Run | None, command: RunCommand) -> tuple[RunEvent, ...]:
    assert run is not None, "a run is born by a request, not by a command to it"
    return run_rules.decide(run, command)


def given(*events: RunEvent) -> RunStory:
    return Story(evolve_run, _decide_run, events)


def given_session(*events: SessionEvent) -> Story[Session, SessionEvent, SessionCommand]:
    return Story(session_state.evolve, session_rules.decide, events)


def run_of(*events: RunEvent) -> Run:
    run = given(*events).state
    assert run is not None
    return run


def session_of(*events: SessionEvent) -> Session:
    session = given_session(*events).state
    assert session is not None
    return session


def run_id(number: int) -> UUID:
    return UUID(int=number, version=4)


def ref(text: str) -> ContentRef:
    """Return a reference to a text; equal texts have equal references."""
    data = text.encode()
    hmac = hashlib.sha256(data).hexdigest()
    return ContentRef(id=uuid5(NAMESPACE_URL, text), bytes=len(data), hmac=hmac)


def requester(**changes: Any) -> Requester:
    plain = {"session_key": ROOT, "display_key": "main", "agent_id": "main", "depth": 0}
    more = {"root_session_key": ROOT, "sandboxed": False}
    return fact_of(Requester, plain | more | changes)


def facts(**changes: Any) -> AdmissionFacts:
    plain = {
        "requester_agent_id": "main",
        "agent_id_argument_given": False,
        "target_agent_id": "main",
        "mode": "run",
        "thread": False,
        "caller_depth": 0,
        "max_spawn_depth": 2,
        "active_children": 0,
        "max_children": 5,
        "require_agent_id": False,
        "allow_agents": None,
        "depth_from": "record",
    }
    return fact_of(AdmissionFacts, plain | changes)


def plan(**changes: Any) -> Plan:
    """Return a plan without a model, archived an hour after the end."""
    plain = {
        "model_source": "default",
        "model_applied": False,
        "run_timeout_seconds": 0,
        "tools_deny": (),
        "runtime": "scripted",
        "archive_after_minutes": 60,
        "run_timeout_source": "defaults",
        "workspace_source": "agent",
    }
    return fact_of(Plan, plain | changes)


def requested(**changes: Any) -> SpawnRequested:
    """Return the request of a root session for a child of its own agent."""
    plain = {
        "run_id": run_id(1),
        "session_id": run_id(1001),
        "requester": requester(),
        "requested_agent_id": "main",
        "task": ref("task"),
        "options": SpawnOptions(),
        "facts": facts(),
        "config_revision": 1,
        "holder": "server-1",
    }
    return fact_of(SpawnRequested, plain | changes)


def observed(**changes: Any) -> SessionObserved:
    plain = {
        "session_id": run_id(2000),
        "session_key": ROOT,
        "display_key": "main",
        "agent_id": "main",
        "depth": 0,
        "role": "main",
        "control_scope": "children",
        "root_session_key": ROOT,
        "asserted_by": "admin",
        "sandboxed": False,
        "depth_from": "shape",
    }
    return fact_of(SessionObserved, plain | changes)


def observed_child(**changes: Any) -> SessionObserved:
    plain = {
        "session_key": CHILD,
        "display_key": CHILD,
        "depth": 1,
        "role": "orchestrator",
        "spawned_by": ROOT,
        "run_id": run_id(1),
        "asserted_by": "spawn",
    }
    return observed(**(plain | changes))


# A run that a random test asks one thing after the other of.


class AskedRun:
    """A run and its `story` so far."""

    story: Story[Run, RunEvent, RunCommand]

    @property
    def run(self) -> Run:
        assert self.story.state is not None
        return self.story.state

    def ask(self, command: RunCommand) -> tuple[RunEvent, ...] | None:
        """Return the recorded events, or None if the command was refused."""
        try:
            events = self.story.decide(self.story.state, command)
        except Rejected:
            return None
        self.story = given(*self.story.events, *events)
        return events

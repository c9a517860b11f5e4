"""Events of a session."""

from typing import Literal
from uuid import UUID

from domain.values.record import ContentRef, Event
from domain.values.role import ControlScope, Role
from domain.values.shared_values import SharedChange, SharedKey

Assertion = Literal["agentId", "sandboxed"]
"""Fact of a session that only the caller vouches for."""


class SessionObserved(Event):
    """First sighting of a session: as a requester, or because it was spawned.

    Attributes:
        asserted_by: Source of the facts: `spawn` for a child, else the session that the token acts
            for, or the id of the token.
        assertions: The facts that only this source vouches for.
        depth_from: Where the depth was found.
        sandboxed: For a child, from its plan; so is `workspace_dir`.
    """

    session_id: UUID
    session_key: str
    display_key: str
    agent_id: str
    depth: int
    role: Role
    control_scope: ControlScope
    spawned_by: str | None = None
    root_session_key: str
    run_id: UUID | None = None
    asserted_by: str
    sandboxed: bool
    workspace_dir: str | None = None
    depth_from: Literal["spawn", "chain", "shape"]
    assertions: tuple[Assertion, ...] = ()


class ChildAdmitted(Event):
    """Admission of a child, which takes one of the requester's places.

    `active_children` is the number of places taken before it.
    """

    run_id: UUID
    active_children: int
    max_children: int


class ChildReleased(Event):
    """Release of a child's place: the child and all its descendants are over."""

    run_id: UUID


class ChildSettled(Event):
    """Announcement or refusal of a child that the session may be waiting for.

    `reports` are the children to report to the session from now on: this one, all of a batch if
    this is its last one, or none.
    """

    run_id: UUID
    reports: tuple[UUID, ...] = ()


class SessionContinued(Event):
    """Continuation of the session by another run, with the role and control scope of its plan.

    `settled` are the children whose reports are delivered: to this run, or with the announcement of
    the run before it.
    """

    run_id: UUID
    role: Role
    control_scope: ControlScope
    settled: tuple[UUID, ...] = ()


class SessionClosed(Event):
    """Closing of the session, which then takes no messages and spawns no more."""

    reason: str


class TranscriptProvided(Event):
    """Transcript of the session so far, provided by `by`; it replaces any earlier one.

    Attributes:
        content: A text of this session: one JSON object a line, `entries` lines.
        tokens: The number of tokens, as stated by the caller.
    """

    entries: int
    tokens: int | None = None
    content: ContentRef
    by: str


class SharedContextChanged(Event):
    """Change of the session's shared context. Values are texts of this session.

    With `cause` "spawn" these are the keys of the spawn `run_id`, recorded together with its
    `SessionCreated`; with "patch" they were written by `by`.
    """

    cause: Literal["spawn", "patch"]
    changes: tuple[SharedChange, ...]
    run_id: UUID | None = None
    by: str | None = None


class SharedContextInherited(Event):
    """Shared context that a run of the session starts with; it replaces an earlier run's.

    It comes from `from_session`, the session that spawned this one, as of `at_position`.
    """

    run_id: UUID
    from_session: str
    at_position: int
    keys: tuple[SharedKey, ...]


class PreambleChanged(Event):
    """New preamble for the session's later runs, instead of the spawn's; None removes it.

    The preamble is a text of this session.
    """

    preamble: ContentRef | None = None
    by: str


class ToolRefused(Event):
    """Denial of a run's request by its tool policy (rule `tools`).

    `about` is the run or session that the request was about; None for its own.
    """

    tool: str
    by: str
    about: str | None = None


SessionEvent = (
    SessionObserved
    | ChildAdmitted
    | ChildReleased
    | ChildSettled
    | TranscriptProvided
    | SessionContinued
    | SessionClosed
    | SharedContextChanged
    | SharedContextInherited
    | PreambleChanged
    | ToolRefused
)

"""What can happen to a session."""

from typing import Literal
from uuid import UUID

from domain.values.record import ContentRef, Event
from domain.values.role import ControlScope, Role
from domain.values.shared_values import SharedChange, SharedKey

Assertion = Literal["agentId", "sandboxed"]
"""A fact of a session for which there is nothing but the word of who asked."""


class SessionObserved(Event):
    """The session was seen for the first time: as a requester, or because it was spawned.

    `asserted_by` says on whose word the facts stand: `spawn` for a child, else the session that the
    token acts for, or the token's id. `assertions` names the facts that rest on that word alone
    (`agentId`, `sandboxed`); `depth_from` says where the depth was found. `sandboxed` and
    `workspace_dir` are those of the plan for a child.
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
    """A child was permitted: it takes one of the requester's places."""

    run_id: UUID
    active_children: int
    max_children: int


class ChildReleased(Event):
    """The child and all below it are over: its place is free."""

    run_id: UUID


class ChildSettled(Event):
    """The child is announced or refused; recorded where an orchestrator may be waiting for it.
    `reports` are the children of which its session may be told from now on: this one, all of a
    batch whose last one this is, or none."""

    run_id: UUID
    reports: tuple[UUID, ...] = ()


class SessionContinued(Event):
    """Another run goes on with the session, in the place of the one before it. `role` and
    `control_scope` are those of its plan. `settled` are the children of which is told no more: they
    were told to this run, or with the announcement of the one before it."""

    run_id: UUID
    role: Role
    control_scope: ControlScope
    settled: tuple[UUID, ...] = ()


class SessionClosed(Event):
    """The session is put away and spawns no more."""

    reason: str


class TranscriptProvided(Event):
    """Somebody told what has been said in the session so far, in the place of what was told before.

    `content` is a text of this session, a JSON object a line, with `entries` lines. `tokens` is how
    many they are by the word of who told it.
    """

    entries: int
    tokens: int | None = None
    content: ContentRef
    by: str


class SharedContextChanged(Event):
    """The session's family shares more, or something else, or less.

    With `cause` "spawn" these are the keys of its spawn `run_id`, recorded with that one's
    `SessionCreated`; with "patch" what `by` wrote. Values are texts of this session.
    """

    cause: Literal["spawn", "patch"]
    changes: tuple[SharedChange, ...]
    run_id: UUID | None = None
    by: str | None = None


class SharedContextInherited(Event):
    """A run of the session starts with what its family shares, as it was at `at_position` in the
    session that spawned it; in the place of what an earlier run was given."""

    run_id: UUID
    from_session: str
    at_position: int
    keys: tuple[SharedKey, ...]


class PreambleChanged(Event):
    """What stands in front of the system prompt of the session's later runs, in the place of what
    its spawn said; None when nothing does any more. A text of this session."""

    preamble: ContentRef | None = None
    by: str


class ToolRefused(Event):
    """A run of the session asked for something that its tool policy denies (rule `tools`). `about`
    is the run or the session of which it asked that; None for its own."""

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

"""What can happen to a session."""

from typing import Literal
from uuid import UUID

from domain.fact import Event

Role = Literal["main", "orchestrator", "leaf"]
ControlScope = Literal["children", "none"]


class SessionObserved(Event):
    """The session was seen for the first time: as a requester, or because it was spawned.

    `asserted_by` says on whose word the facts stand: `spawn` for a child, else the token's id.
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


class ChildAdmitted(Event):
    """A child was permitted: it takes one of the requester's places."""

    run_id: UUID
    active_children: int
    max_children: int


class ChildReleased(Event):
    """The child and all below it are over: its place is free."""

    run_id: UUID


class ChildSettled(Event):
    """The child is announced or refused; recorded where an orchestrator may be waiting for it."""

    run_id: UUID


class SessionClosed(Event):
    """The session is put away and spawns no more."""

    reason: str


SessionEvent = SessionObserved | ChildAdmitted | ChildReleased | ChildSettled | SessionClosed

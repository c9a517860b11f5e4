"""Views of sessions."""

from collections.abc import Callable, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any, Literal
from uuid import UUID

from application.queries.views.run import RunView
from application.queries.views.view import View, selection
from domain.run.facts import MessageCause
from domain.session.events import Assertion
from domain.session.state import Session
from domain.values.role import ControlScope, Role


@selection("run_id", "label", "stage", "agent_id")
class RequestedRunView(RunView):
    """A run that the session requested."""


@selection("run_id", "stage", "continues")
class OwnRunView(RunView):
    """A run of the child session itself; `continues` is the run before it."""


class QueuedMessageView(View):
    """A message waiting for the session's current run to end. `runId` is the run that it will
    become. `messagePreview` is null if its text was erased."""

    run_id: UUID
    message_preview: str | None
    by: str
    cause: MessageCause
    queued_at: datetime | None


class SessionView(View):
    """A session. `assertedBy` is the actor whose word it was recorded on; `assertions` lists the
    facts that rest on that word alone. `depthFrom` says where its depth was found. Model and
    thinking are those of its newest run, with their sources. `queue` holds the messages waiting for
    that run; `unreadReports` lists finished children not yet reported to any of its runs. These are
    empty for a session that was not spawned here. `preamblePosition` is where the preamble of its
    later runs was written; null for the preamble of its spawn. `maxChildren` follows the
    configuration in force; null if that was erased."""

    session_key: str
    display_key: str
    session_id: UUID
    agent_id: str
    depth: int
    role: Role
    control_scope: ControlScope
    sandboxed: bool | None
    workspace_dir: str | None
    spawned_by: str | None
    root_session_key: str
    run_id: UUID | None
    stage: Literal["open", "closed"]
    created_at: datetime
    closed_at: datetime | None
    asserted_by: str | None
    assertions: list[Assertion]
    depth_from: str | None
    active_children: int
    active_runs: list[UUID]
    max_children: int | None
    pending_descendants: int
    running_descendants: int
    runs: list[RequestedRunView]
    own_runs: list[OwnRunView]
    model_provider: str | None
    model: str | None
    model_source: str | None
    thinking: str | None
    thinking_source: str | None
    queue: list[QueuedMessageView]
    unread_reports: list[UUID]
    preamble_position: int | None
    version: int


_SOURCES = {
    "active_children": "active_children",
    "active_runs": "counted",
    "unread_reports": "reports",
}
"""Where fields of the view are in the state, if not in a field of the same name."""


@selection(
    *(name for name in SessionView.model_fields if name in {*Session.__struct_fields__, *_SOURCES})
)
class SessionRecordView(SessionView):
    """The fields of a session that follow from its own events alone."""


SESSION_READERS: Mapping[str, Callable[[Session], Any]] = {
    name: attrgetter(_SOURCES.get(name, name)) for name in SessionRecordView.model_fields
}
"""Readers of the fields that follow from the state alone."""


def session_record_view(session: Session) -> SessionRecordView:
    """Return the fields of a session that follow from its own events alone."""
    return SessionRecordView(**recorded_members(session))


def recorded_members(session: Session) -> dict[str, Any]:
    """Return the same fields by name, for both views."""
    return {name: read(session) for name, read in SESSION_READERS.items()}

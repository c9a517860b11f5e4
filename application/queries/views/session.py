"""How a session reads."""

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
    """A run that a session asked for."""


@selection("run_id", "stage", "continues")
class OwnRunView(RunView):
    """A run of a child's session itself; `continues` is the one before it."""


class QueuedMessageView(View):
    """A message that waits for the session's run at work. `runId` is that of the run which will go
    on with it; `messagePreview` null: its text was erased."""

    run_id: UUID
    message_preview: str | None
    by: str
    cause: MessageCause
    queued_at: datetime | None


class SessionView(View):
    """A session. `assertedBy` is on whose word it is on record, `assertions` which facts rest on
    that alone, `depthFrom` where its depth was found. Model and thinking are those of its newest
    run, with where they come from; `queue` are the messages that wait for it, `unreadReports` its
    children that are done and of which no run of it was told. A session that nobody spawned here
    has none of them. `preamblePosition` is where the preamble of its later runs was written; null
    for the one of its spawn. `maxChildren` is by the configuration in force; null when that was
    erased."""

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
"""Where fields of a session are in its state, if they are no fields of the same name."""


@selection(
    *(name for name in SessionView.model_fields if name in {*Session.__struct_fields__, *_SOURCES})
)
class SessionRecordView(SessionView):
    """What a session's own events say of it: the members of `SessionView` that follow from them
    alone."""


SESSION_READERS: Mapping[str, Callable[[Session], Any]] = {
    name: attrgetter(_SOURCES.get(name, name)) for name in SessionRecordView.model_fields
}
"""The fields of a session that follow from its state alone."""


def session_record_view(session: Session) -> SessionRecordView:
    """A session as its own events made it."""
    return SessionRecordView(**recorded_members(session))


def recorded_members(session: Session) -> dict[str, Any]:
    """What a session's own events say of it, by the fields of both views."""
    return {name: read(session) for name, read in SESSION_READERS.items()}

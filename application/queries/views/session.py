"""How a session reads."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from application.queries.views.run import RecordedStage
from application.queries.views.view import View
from domain.session.events import Assertion, ControlScope, Role


class RequestedRunView(View):
    """A run that a session asked for."""

    run_id: UUID
    label: str | None
    stage: RecordedStage
    agent_id: str | None


class OwnRunView(View):
    """A run of a child's session itself; `continues` is the one before it."""

    run_id: UUID
    stage: RecordedStage
    continues: UUID | None


class SessionView(View):
    """A session. `assertedBy` is on whose word it is on record, `assertions` which facts rest on
    that alone, `depthFrom` where its depth was found."""

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
    max_children: int
    pending_descendants: int
    running_descendants: int
    runs: list[RequestedRunView]
    own_runs: list[OwnRunView]
    version: int

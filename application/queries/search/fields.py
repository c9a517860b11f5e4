"""The fields of a run's or a session's state by which one can search, by the names of their
views."""

from collections.abc import Callable, Mapping
from typing import cast

from pydantic import JsonValue

from application.queries.views.run import announcement_state, status_of
from domain.run.state import Run
from domain.session.state import Session

RUN_FIELDS: Mapping[str, Callable[[Run], object]] = {
    "stage": lambda run: run.stage,
    "status": status_of,
    "outcome": lambda run: run.outcome,
    "agentId": lambda run: run.agent_id,
    "childSessionKey": lambda run: run.child_session_key,
    "depth": lambda run: run.depth,
    "role": lambda run: run.role,
    "modelProvider": lambda run: run.plan.model_provider if run.plan else None,
    "model": lambda run: run.plan.model if run.plan else None,
    "thinking": lambda run: run.plan.thinking if run.plan else None,
    "runTimeoutSeconds": lambda run: run.plan.run_timeout_seconds if run.plan else None,
    "workspaceDir": lambda run: run.plan.workspace_dir if run.plan else None,
    "sandboxed": lambda run: run.plan.sandboxed if run.plan else None,
    "lane": lambda run: run.lane,
    "rule": lambda run: run.refusal.rule if run.refusal else None,
    "configRevision": lambda run: run.config_revision,
    "runtimeMs": lambda run: run.runtime_ms,
    "yielded": lambda run: run.yielded_by is not None,
    "continuedBy": lambda run: str(run.continued_by) if run.continued_by else None,
    "announcement.state": lambda run: announcement_state(run).state,
}
SESSION_FIELDS: Mapping[str, Callable[[Session], object]] = {
    "stage": lambda session: session.stage,
    "role": lambda session: session.role,
    "controlScope": lambda session: session.control_scope,
    "runId": lambda session: str(session.run_id) if session.run_id else None,
    "activeChildren": lambda session: session.active_children,
    "preamblePosition": lambda session: session.preamble_position,
}
MAX_CHILDREN = "maxChildren"
"""The one field of a session that is the configuration's."""


def run_field(run: Run | None, name: str) -> JsonValue:
    """What the field is; null before there is the run."""
    return cast("JsonValue", RUN_FIELDS[name](run)) if run is not None else None


def session_field(session: Session | None, name: str) -> JsonValue:
    """What the field is; null before there is the session."""
    return cast("JsonValue", SESSION_FIELDS[name](session)) if session is not None else None


def is_value(value: JsonValue, text: str) -> bool:
    """Whether a value is the one that a text means: as it stands, or as JSON writes it."""
    if value is None or isinstance(value, bool):
        return text == {None: "null", True: "true", False: "false"}[value]
    return str(value) == text

"""The fields of a run's or a session's state by which one can search, by the names of their
views."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import cast, get_args
from uuid import UUID

import orjson
from pydantic import JsonValue

from application.queries.views.run import (
    AnnouncementStateName,
    RecordedStage,
    RunStatus,
    RunView,
    announcement_state,
    status_of,
)
from domain.run.facts import Cleanup, ContextMode, MessageCause, RunOutcome, SpawnMode
from domain.run.state import Run
from domain.session.events import ControlScope, Role
from domain.session.state import Session, SessionStage


def _text(value: UUID | datetime | None) -> str | None:
    """An id or an instant as a view prints it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return None if value is None else str(value)


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
    "runId": lambda run: _text(run.run_id),
    "requestedAgentId": lambda run: run.requested_agent_id,
    "requesterSessionKey": lambda run: run.requester.session_key,
    "controllerSessionKey": lambda run: run.requester.session_key,
    "sessionId": lambda run: _text(run.session_id),
    "label": lambda run: run.label,
    "mode": lambda run: run.options.mode,
    "cleanup": lambda run: run.cleanup,
    "contextMode": lambda run: run.context_mode,
    "continues": lambda run: _text(run.continues),
    "respawnedFrom": lambda run: _text(run.respawn.run_id) if run.respawn else None,
    "batchId": lambda run: _text(run.batch.batch_id) if run.batch else None,
    "cause": lambda run: run.cause or ("message" if run.continues is not None else None),
    "createdAt": lambda run: _text(run.created_at),
    "startedAt": lambda run: _text(run.started_at),
    "endedAt": lambda run: _text(run.ended_at),
    "announcedAt": lambda run: _text(run.announced_at),
    "archiveAt": lambda run: _text(run.archive_at),
    "archivedAt": lambda run: _text(run.archived_at),
    "transcriptPath": lambda run: run.transcript_path,
    "version": lambda run: run.version,
}
"""Those that are one value. Texts may be erased; lists and parts of their own are compared by
the history of a run and by a diff."""
FIELDS_OF_A_RUN = tuple(one.alias or name for name, one in RunView.model_fields.items())
"""All of a run's state."""
OF_ANY_EVENT = frozenset({"version", "contextMode", "archiveAt", "transcriptPath"})
"""Those that other events change too than those that come to a stage."""
SESSION_FIELDS: Mapping[str, Callable[[Session], object]] = {
    "stage": lambda session: session.stage,
    "role": lambda session: session.role,
    "controlScope": lambda session: session.control_scope,
    "runId": lambda session: str(session.run_id) if session.run_id else None,
    "activeChildren": lambda session: session.active_children,
    "preamblePosition": lambda session: session.preamble_position,
}
_FLAG = ("true", "false")
RUN_VALUES: Mapping[str, tuple[str, ...]] = {
    "stage": get_args(RecordedStage),
    "status": get_args(RunStatus),
    "outcome": get_args(RunOutcome),
    "role": get_args(Role),
    "sandboxed": _FLAG,
    "yielded": _FLAG,
    "announcement.state": get_args(AnnouncementStateName),
    "mode": get_args(SpawnMode),
    "cleanup": get_args(Cleanup),
    "contextMode": get_args(ContextMode),
    "cause": get_args(MessageCause),
}
SESSION_VALUES: Mapping[str, tuple[str, ...]] = {
    "stage": get_args(SessionStage),
    "role": get_args(Role),
    "controlScope": get_args(ControlScope),
}
"""The values that a field can have beside null, where it is one of a few words. Rules are not:
those of other releases may be on record."""
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
    written = orjson.dumps(value).decode()
    return text == written or (isinstance(value, str) and text == value)


def word_of(text: str) -> str:
    """The word that a text means: as it stands, or as JSON writes it."""
    try:
        word = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return word if isinstance(word, str) else text

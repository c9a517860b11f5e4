"""Resolve the names in a spawn request, and check the rules that its schema cannot express."""

from application.commands.dependencies import dependency_requests
from application.commands.shared_values import parse_shared_values, references_of
from application.queries.errors import QueryError, invalid_value
from application.queries.session_reference import canonical_key
from domain.configuration.configuration import Configuration
from domain.run.facts import RespawnFacts
from domain.spawn.request import (
    LABEL_CHARS_MAX,
    TASK_BYTES_MAX,
    ResolvedSpawn,
    SpawnRequest,
)
from domain.values.agent_id import is_valid_agent_id, normalise_agent_id
from domain.values.session_key import agent_id_of, render_session_key

TASKS_MAX = 50
COPIES_CHARS_MAX = 32 * 1024 * 1024
REQUESTER_KEY = "/requester/sessionKey"


def resolve_request(
    request: SpawnRequest,
    configuration: Configuration,
    requester_key: str | None = None,
    respawn: RespawnFacts | None = None,
) -> ResolvedSpawn:
    """Resolve the names in a request.

    Args:
        requester_key: Canonical key of the requester, if the request gives something else than the
            key, such as its session id.
        respawn: Facts of the earlier run, for a respawn.

    Raises:
        QueryError: If a key, a task or another member is invalid.
    """
    tasks = _tasks_of(request)
    if request.attach_as.mount_path is not None and not request.attachments:
        raise invalid_value("/attachAs/mountPath", "requires attachments; attach a file or omit it")
    spelling = requester_key or request.requester.session_key
    key = requester_key or canonical_key(spelling, configuration, REQUESTER_KEY)
    override = (request.requester.agent_id_override or "").strip()
    if override and not is_valid_agent_id(override):
        raise invalid_value("/requester/agentIdOverride", "must match [a-z0-9][a-z0-9_-]{0,63}")
    agent_id = normalise_agent_id(override) if override else agent_id_of(key)
    session = configuration.session
    return ResolvedSpawn(
        request=request,
        requester_key=key,
        requester_display_key=render_session_key(
            spelling, main_key=session.main_key, scope=session.scope
        ),
        requester_agent_id=agent_id,
        asserts_agent=agent_id != agent_id_of(key),
        tasks=tasks,
        shared=parse_shared_values(request.shared_context, request.shared_context_scope),
        dependencies=dependency_requests(
            request.depends_on, request.chain_after, references_of(request.shared_context)
        ),
        respawn=respawn,
    )


def _tasks_of(request: SpawnRequest) -> tuple[str, ...]:
    """Return the tasks of a request, one for each run; refuse invalid ones."""
    task, label = request.task, request.label
    if isinstance(task, str):
        if request.parallel:
            raise invalid_value("/parallel", "requires a list of tasks")
        _require_tasks({"/task": task})
        return (task,)
    if not isinstance(task, list):
        raise invalid_value("/task", "must be a string or a list of strings")
    if not request.parallel:
        raise invalid_value("/task", "a list of tasks needs parallel: true")
    if not task:
        raise invalid_value("/task", "must not be empty")
    if len(task) > TASKS_MAX:
        raise invalid_value("/task", f"has {len(task)} tasks, more than the {TASKS_MAX} allowed")
    for number, text in enumerate(task):
        if not isinstance(text, str):
            raise invalid_value(f"/task/{number}", "must be a text")
    _require_tasks({f"/task/{number}": text for number, text in enumerate(task)})
    last = f"{label}-{len(task)}" if label else ""
    if len(last) > LABEL_CHARS_MAX:
        raise invalid_value(
            "/label",
            f"has {len(last)} characters with its number, more than the {LABEL_CHARS_MAX} allowed",
        )
    attached_characters = sum(len(file.content) for file in request.attachments)
    if attached_characters * len(task) > COPIES_CHARS_MAX:
        raise invalid_value(
            "/attachments",
            f"have {attached_characters} characters, copied for each of {len(task)} tasks: more"
            f" than {COPIES_CHARS_MAX} in total. Spawn fewer tasks or attach smaller files",
        )
    return tuple(task)


def _require_tasks(tasks: dict[str, str]) -> None:
    for pointer, task in tasks.items():
        if not task.strip():
            raise invalid_value(pointer, "task required")
    if sum(len(task.encode()) for task in tasks.values()) > TASK_BYTES_MAX:
        subject = "a task" if len(tasks) == 1 else "all tasks together"
        raise QueryError("too_large", f"{subject} may have at most {TASK_BYTES_MAX} bytes")

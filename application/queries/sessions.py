"""Sessions and their shared contexts."""

from collections.abc import Mapping
from uuid import UUID

from application.ports.registry import RunQuery
from application.queries.access import Caller
from application.queries.as_of import AsOf, resolve_as_of
from application.queries.command import Column, Command
from application.queries.configuration import configuration_in_force
from application.queries.errors import QueryError
from application.queries.operation import ReadAsOf, Tool, operation
from application.queries.runs import readable_run
from application.queries.services import QueryServices
from application.queries.session_reference import (
    KEY_POINTER,
    resolve_session_key,
    unknown_session,
)
from application.queries.views.session import (
    OwnRunView,
    QueuedMessageView,
    RequestedRunView,
    SessionView,
    recorded_members,
)
from application.queries.views.shared_context import (
    RunSharedContextView,
    SharedContextView,
    run_shared_context_view,
    shared_context_etag,
    shared_context_view,
)
from application.queries.views.view import Answer
from domain.run.events import RunStarted
from domain.run.state import Run
from domain.session.state import Session

RUNS_SHOWN_MAX = 500
OWN_RUNS_SHOWN_MAX = 50


async def visible_session(
    services: QueryServices,
    caller: Caller,
    spelling: str,
    at: AsOf,
    *,
    pointer: str = KEY_POINTER,
) -> Session:
    """Return a session that the caller covers, named in any spelling.

    Raises:
        QueryError: No such session is on record, or the caller does not cover it.
    """
    session_key = await resolve_session_key(
        services, caller, spelling, pointer=pointer, at=at.position
    )
    session = await services.work.registry.session(session_key, at=at.position)
    if session is None or not await services.access.covers_session(caller, session.session_key):
        raise await unknown_session(services, caller, spelling, position=at.position)
    return session


@operation(
    "GET",
    "/v1/sessions/{key}",
    name="getSession",
    tag="sessions",
    scope="read",
    summary="Get a session, its own runs and its children",
    description=(
        "Finds the session by its key in any spelling, its session id, or `current`. `assertedBy`"
        " is the actor whose word it was first recorded on (`spawn` for a child), `assertions`"
        " the facts that rest on that word alone, and `depthFrom` where its depth was found."
        " `runs` are the runs that it requested, `ownRuns` those of a child itself, newest first."
    ),
    errors=("not_found",),
    tool=Tool(
        name="session_status",
        title="Look at a session",
        description="Returns a session: its depth, role, children, model and queued messages.",
    ),
    command=Command(
        "session get",
        "Show a session, its own runs and its children.",
        fields=(
            Column("session", "sessionKey|key"),
            Column("id", "sessionId"),
            Column("agent", "agentId"),
            Column("stage", "stage"),
            Column("depth", "depth"),
            Column("role", "role"),
            Column("control", "controlScope"),
            Column("spawned by", "spawnedBy"),
            Column("children", form="children"),
            Column("pending", "pendingDescendants"),
            Column("created", "createdAt", "instant"),
        ),
    ),
)
async def get_session(
    services: QueryServices, caller: Caller, key: str, query: ReadAsOf
) -> Answer[SessionView]:
    moment = await resolve_as_of(services, caller, query.at)
    session = await visible_session(services, caller, key, moment)
    registry = services.work.registry
    pending, running = await registry.descendants(session.session_key, at=moment.position)
    runs = await registry.runs(
        RunQuery.where(requester=session.session_key), at=moment.position, limit=RUNS_SHOWN_MAX
    )
    configuration = await configuration_in_force(services.work, moment.position)
    newest, own_runs = await _own_runs(services, session, moment)
    plan = newest.plan if newest is not None else None
    planned = ("model_provider", "model", "model_source", "thinking", "thinking_source")
    view = SessionView(
        **recorded_members(session),
        max_children=(
            configuration.subagent_defaults.max_children_per_agent if configuration else None
        ),
        pending_descendants=pending,
        running_descendants=running,
        runs=[RequestedRunView.from_source(run) for run in runs],
        own_runs=own_runs,
        **{name: getattr(plan, name, None) for name in planned},
        queue=await _queue(services, newest),
    )
    return Answer(view, moment.position)


async def _queue(services: QueryServices, newest: Run | None) -> list[QueuedMessageView]:
    """Return the messages waiting for the newest run, with previews of their texts."""
    waiting = (newest.queue or ()) if newest is not None else ()
    texts: Mapping[UUID, str] = {}
    if waiting:
        texts = await services.work.contents.previews([message.message for message in waiting])
    return [
        QueuedMessageView.from_source(message, message_preview=texts.get(message.message.id))
        for message in waiting
    ]


async def _own_runs(
    services: QueryServices, session: Session, at: AsOf
) -> tuple[Run | None, list[OwnRunView]]:
    """Return the newest run of a child session, and its runs, newest first.

    Each run leads to the one before it.
    """
    found: list[OwnRunView] = []
    newest: Run | None = None
    run_id = session.run_id
    while run_id is not None and len(found) < OWN_RUNS_SHOWN_MAX:
        run = await services.work.registry.run(run_id, at=at.position)
        if run is None:
            break
        newest = newest or run
        found.append(OwnRunView.from_source(run))
        run_id = run.continues
    return newest, found


@operation(
    "GET",
    "/v1/sessions/{key}/shared-context",
    name="getSharedContext",
    tag="shared context",
    scope="content",
    summary="Show the context that a session shares with its children",
    description=(
        "Returns the context that the session's next child starts with. Requires scope `content`."
        " `sizes` has the bytes of each value; `sources` who wrote each key, and in which"
        " session; `history` the newest 200 changes in order; `startedWith` the newest 500"
        " children, each with the version it started with. The `ETag` is the version, 0 while"
        " nothing is shared."
    ),
    errors=("not_found",),
    etag=shared_context_etag,
    command=Command(
        "session context",
        "Show the context that a session shares with its children.\n"
        "\n"
        "Shows the values, who wrote them, and which run started with which version.",
        fields=(
            Column("session", "sessionKey"),
            Column("version", "version"),
            Column("position", "position"),
        ),
    ),
)
async def get_shared_context(
    services: QueryServices, caller: Caller, key: str, query: ReadAsOf
) -> Answer[SharedContextView]:
    moment = await resolve_as_of(services, caller, query.at)
    session = await visible_session(services, caller, key, moment)
    view = await shared_context_view(services.work, session, moment.position)
    return Answer(view, moment.position)


@operation(
    "GET",
    "/v1/runs/{runId}/shared-context",
    name="getRunSharedContext",
    tag="shared context",
    scope="content",
    summary="Show the shared context that a run received at its start",
    description=(
        "Returns the whole context, including values that the prompt truncates. A child may read"
        " its own with its own token. `position` is where the run was claimed, and the context is"
        " as of then; null if nothing was shared. `erased` lists the keys whose values were"
        " erased."
    ),
    errors=("not_found", "not_started"),
    command=Command("run context", "Show the shared context that a run received at its start."),
)
async def get_run_shared_context(
    services: QueryServices, caller: Caller, run_id: str, query: ReadAsOf
) -> Answer[RunSharedContextView]:
    """Return the shared context that a run received when it was claimed."""
    moment = await resolve_as_of(services, caller, query.at)
    run = await readable_run(services, caller, run_id, moment)
    recorded = await services.work.log.first("RunStarted", run.run_id)
    if recorded is None or recorded.envelope.position > moment.position:
        raise QueryError(
            "not_started",
            "the run has not started, so it has received no shared context yet",
            position=moment.position,
        )
    assert isinstance(recorded.event, RunStarted)
    view = await run_shared_context_view(services.work.contents, run.run_id, recorded.event)
    return Answer(view, moment.position)

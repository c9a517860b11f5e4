"""`sessions_list`, `sessions_history`, `sessions_send` and `shared_context_get`."""

from datetime import datetime, timedelta
from uuid import UUID

from pydantic import Field

from application.commands.control import require_control
from application.queries.access import require_scope
from application.queries.as_of import resolve_as_of
from application.queries.errors import QueryError
from application.queries.operation import ReadAsOf
from application.queries.runs import GetRunTranscript, ListRuns, get_run_transcript, list_runs
from application.queries.sessions import (
    get_run_shared_context,
    get_shared_context,
    visible_session,
)
from application.queries.views.run import RecordedStage, RunSummary
from application.queries.views.run_records import TranscriptEntryView
from application.queries.views.shared_context import RunSharedContextView, SharedContextView
from application.queries.views.view import View
from infrastructure.inbound.mcp.tools.arguments import OWN_SESSION, ToolArguments, number
from infrastructure.inbound.mcp.tools.call import McpCall, ToolAnswer, ToolInputError
from infrastructure.inbound.mcp.tools.family import find_target
from infrastructure.inbound.mcp.tools.offered import tool
from infrastructure.inbound.mcp.tools.subagents import (
    REPLY_SECONDS_DEFAULT,
    REPLY_SECONDS_MAX,
    ControlAnswer,
    control_answer,
    send_and_wait,
)

SESSIONS_MAX = 200
SESSIONS_DEFAULT = 50
MESSAGES_MAX = 20
HISTORY_ENTRIES_MAX = 500
HISTORY_ENTRIES_DEFAULT = 50
HISTORY_RUNS_MAX = 20
MINUTES_MAX = 1_000_000
_SPAWNED: tuple[RecordedStage, ...] = (
    "session-created", "queued", "started", "ended", "announced", "archived",
)  # fmt: skip


class SpawnedSession(View):
    """A session that the caller spawned, by its newest run.

    `messages` are the last entries of its transcript, or null if none were requested.
    """

    key: str
    session_id: UUID
    kind: str
    label: str | None
    run: RunSummary
    updated_at: datetime
    messages: list[TranscriptEntryView] | None


class SessionList(View):
    """The sessions that a session spawned, newest first."""

    count: int
    sessions: list[SpawnedSession]


class SessionHistory(View):
    """The last entries of a session, earliest first, from the transcripts of its runs.

    `erased` are the runs whose transcript was erased.
    """

    session_key: str
    session_id: UUID
    entries: list[TranscriptEntryView]
    erased: list[UUID]


class SharedContextFound(View):
    """Shared context that the caller's session was given, and that it shares.

    `given` is the context with which the caller's run was started, null for a session without a
    run. `shared` is the context that the session shares with its sub-agents, null if it has no
    record yet.
    """

    given: RunSharedContextView | None
    shared: SharedContextView | None


class ListSessions(ToolArguments):
    """Arguments of `sessions_list`."""

    limit: int = number(SESSIONS_DEFAULT, 1, SESSIONS_MAX, "Maximum number of sessions.")
    active_minutes: float = number(
        0, 0, MINUTES_MAX, "Only sessions active in this many last minutes; 0 for all."
    )
    message_limit: int = number(0, 0, MESSAGES_MAX, "Last messages to include of each.")


@tool(
    "sessions_list",
    title="List sessions",
    description="List the sessions that your session spawned, newest first.",
    scope="read",
)
async def list_sessions(call: McpCall, arguments: ListSessions) -> SessionList:
    """Implement `sessions_list`."""
    require_scope(call.caller, "read")
    messages, minutes = arguments.message_limit, arguments.active_minutes
    if messages:
        require_scope(call.caller, "content")
    page = await list_runs(
        call.services,
        call.caller,
        ListRuns(requester=call.session_key, stages=_SPAWNED, limit=SESSIONS_MAX),
    )
    since = call.services.work.log.now() - timedelta(minutes=minutes) if minutes else None
    rows: dict[UUID, SpawnedSession] = {}
    for run in page.view.items:
        at = run.stages[-1].at if run.stages else run.created_at
        if run.child_session_key is None or run.session_id in rows:
            continue
        if since is not None and at < since:
            continue
        rows[run.session_id] = SpawnedSession(
            key=run.child_session_key,
            session_id=run.session_id,
            kind="subagent",
            label=run.label,
            run=run,
            updated_at=at,
            messages=(await _last_entries(call, run.run_id, messages) or []) if messages else None,
        )
        if len(rows) == arguments.limit:
            break
    return SessionList(count=len(rows), sessions=list(rows.values()))


async def _last_entries(
    call: McpCall, run_id: UUID, count: int, *, tools: bool = False
) -> list[TranscriptEntryView] | None:
    """Return the last entries of a run's transcript, or None if it was erased."""
    try:
        answer = await get_run_transcript(
            call.services, call.caller, str(run_id), GetRunTranscript(last=count, tools=tools)
        )
    except QueryError as error:
        if error.code != "erased":
            raise
        return None
    return answer.view.items


class ShowHistory(ToolArguments):
    """Arguments of `sessions_history`."""

    session_key: str | None = Field(None, description=OWN_SESSION)
    limit: int = number(HISTORY_ENTRIES_DEFAULT, 1, HISTORY_ENTRIES_MAX, "Number of entries.")
    include_tools: bool = Field(False, description="Include tool calls.")


@tool(
    "sessions_history",
    title="Read a session",
    description="Read the last messages of a session: your own, or one below it.",
    scope="content",
)
async def show_history(call: McpCall, arguments: ShowHistory) -> SessionHistory:
    """Implement `sessions_history` for the caller's own session or one below it."""
    require_scope(call.caller, "content")
    limit, spelling = arguments.limit, arguments.session_key or call.session_key
    moment = await resolve_as_of(call.services, call.caller, None)
    session = await visible_session(
        call.services, call.caller, spelling, moment, pointer="/sessionKey"
    )
    entries: list[TranscriptEntryView] = []
    erased: list[UUID] = []
    run_id, seen = session.run_id, 0
    while run_id is not None and len(entries) < limit and seen < HISTORY_RUNS_MAX:
        left, seen = limit - len(entries), seen + 1
        earlier = await _last_entries(call, run_id, left, tools=arguments.include_tools)
        if earlier is None:
            erased.insert(0, run_id)
        entries = [*(earlier or ()), *entries]
        run_id = (await call.services.work.run(run_id)).continues
    return SessionHistory(
        session_key=session.session_key,
        session_id=session.session_id,
        entries=entries,
        erased=erased,
    )


class SendMessage(ToolArguments):
    """Arguments of `sessions_send`."""

    session_key: str | None = Field(None, description="Session key or id.")
    label: str | None = Field(None, description="Label of a sub-agent, instead of the key.")
    message: str = Field(description="Text of the message.")
    timeout_seconds: float = number(
        REPLY_SECONDS_DEFAULT,
        0,
        REPLY_SECONDS_MAX,
        "Maximum time to wait for the reply; 0 does not wait.",
    )


@tool(
    "sessions_send",
    title="Send a message to a session",
    description=(
        "Send a message to a session below yours. The session continues with it at once, or after"
        " its current run. Returns the reply if it comes in time."
    ),
    scope="control",
    output=ControlAnswer,
    reads=False,
)
async def send_message(call: McpCall, arguments: SendMessage) -> ToolAnswer:
    """Implement `sessions_send`, by the key of a session or the label of a sub-agent."""
    target = arguments.session_key or arguments.label
    if target is None:
        raise ToolInputError("sessionKey required")
    await require_control(call.services, call.caller, call.session_key)
    if arguments.session_key is None:
        subagent = await find_target(call, target)
        run_id, label = subagent.run_id, subagent.label
    else:
        moment = await resolve_as_of(call.services, call.caller, None)
        session = await visible_session(
            call.services, call.caller, target, moment, pointer="/sessionKey"
        )
        if session.run_id is None:
            raise QueryError(
                "not_found",
                "that session was not spawned here; send the message on its own channel",
            )
        run = await call.services.work.run(session.run_id)
        run_id, label = str(run.run_id), run.label or session.session_key
    sent = await send_and_wait(call, run_id, label, arguments.message, arguments.timeout_seconds)
    return control_answer("send", sent)


@tool(
    "shared_context_get",
    title="Read shared context",
    description="Read the shared context of your session: received keys, and shared ones.",
    scope="content",
)
async def show_shared_context(call: McpCall) -> SharedContextFound:
    """Implement `shared_context_get`."""
    require_scope(call.caller, "content")
    given: RunSharedContextView | None = None
    shared: SharedContextView | None = None
    own, now = call.caller.run_id, ReadAsOf()
    if own is not None:
        given = (await get_run_shared_context(call.services, call.caller, str(own), now)).view
    try:
        shared = (await get_shared_context(call.services, call.caller, call.session_key, now)).view
    except QueryError as error:
        if error.code != "not_found":
            raise
    return SharedContextFound(given=given, shared=shared)

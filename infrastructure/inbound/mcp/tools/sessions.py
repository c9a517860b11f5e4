"""`sessions_list`, `sessions_history`, `sessions_send` and `session_status`: the sessions that a
session sees, what was said in them, and a message to one."""

from datetime import datetime, timedelta
from uuid import UUID

from application.commands.control import require_control
from application.queries.access import require_scope
from application.queries.as_of import resolve_as_of
from application.queries.errors import QueryError
from application.queries.operation import ReadAsOf
from application.queries.runs import GetRunTranscript, ListRuns, get_run_transcript, list_runs
from application.queries.session_reference import resolve_session_key
from application.queries.sessions import get_session, visible_session
from application.queries.views.run import RecordedStage, RunSummary
from application.queries.views.run_records import TranscriptEntryView
from application.queries.views.session import SessionView
from application.queries.views.view import View
from infrastructure.inbound.mcp.tools.call import (
    McpCall,
    ToolAnswer,
    answer_of,
    count_argument,
    flag_argument,
    number_argument,
    required_text,
    text_argument,
)
from infrastructure.inbound.mcp.tools.family import find_target
from infrastructure.inbound.mcp.tools.subagents import ControlAnswer, send_and_wait

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
    """A session that the caller spawned, by its newest run; `messages` are the last that were said,
    when they were asked for."""

    key: str
    session_id: UUID
    kind: str
    label: str | None
    run: RunSummary
    updated_at: datetime
    messages: list[TranscriptEntryView] | None


class SessionList(View):
    """The sessions that a session spawned, the newest first."""

    count: int
    sessions: list[SpawnedSession]


class SessionHistory(View):
    """What was said in a session last, over its runs, the earliest first. `erased` are those of
    these runs of which nothing is left to read."""

    session_key: str
    session_id: UUID
    entries: list[TranscriptEntryView]
    erased: list[UUID]


class SessionStatus(View):
    """What is on record of a session; `session` is null for one that had nothing to do with
    sub-agents yet."""

    session_key: str
    on_record: bool
    session: SessionView | None


async def list_sessions(call: McpCall) -> ToolAnswer:
    """`sessions_list`."""
    limit = count_argument(call.arguments, "limit", SESSIONS_DEFAULT, SESSIONS_MAX)
    messages = int(number_argument(call.arguments, "messageLimit", 0, 0, MESSAGES_MAX))
    minutes = number_argument(call.arguments, "activeMinutes", 0, 0, MINUTES_MAX)
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
        if len(rows) == limit:
            break
    return answer_of(SessionList(count=len(rows), sessions=list(rows.values())))


async def _last_entries(
    call: McpCall, run_id: UUID, count: int, *, tools: bool = False
) -> list[TranscriptEntryView] | None:
    """What was said last in a run; None when it was erased."""
    try:
        answer = await get_run_transcript(
            call.services, call.caller, str(run_id), GetRunTranscript(last=count, tools=tools)
        )
    except QueryError as error:
        if error.code != "erased":
            raise
        return None
    return answer.view.items


async def show_history(call: McpCall) -> ToolAnswer:
    """`sessions_history`. The session is one below the caller's, or its own."""
    require_scope(call.caller, "content")
    limit = count_argument(call.arguments, "limit", HISTORY_ENTRIES_DEFAULT, HISTORY_ENTRIES_MAX)
    tools = flag_argument(call.arguments, "includeTools")
    spelling = text_argument(call.arguments, "sessionKey") or call.session_key
    moment = await resolve_as_of(call.services, call.caller, None)
    session = await visible_session(
        call.services, call.caller, spelling, moment, pointer="/sessionKey"
    )
    entries: list[TranscriptEntryView] = []
    erased: list[UUID] = []
    run_id, seen = session.run_id, 0
    while run_id is not None and len(entries) < limit and seen < HISTORY_RUNS_MAX:
        left, seen = limit - len(entries), seen + 1
        said = await _last_entries(call, run_id, left, tools=tools)
        if said is None:
            erased.insert(0, run_id)
        entries = [*(said or ()), *entries]
        run_id = (await call.services.work.run(run_id)).continues
    view = SessionHistory(
        session_key=session.session_key,
        session_id=session.session_id,
        entries=entries,
        erased=erased,
    )
    return answer_of(view)


async def send_message(call: McpCall) -> ToolAnswer:
    """`sessions_send`: by the key of a session, or by the label of a sub-agent."""
    message = required_text(call.arguments, "message")
    target = required_text(call.arguments, "sessionKey", "label")
    await require_control(call.services, call.caller, call.session_key)
    if text_argument(call.arguments, "sessionKey") is None:
        one = await find_target(call, target)
        run_id, label = one.run_id, one.label
    else:
        moment = await resolve_as_of(call.services, call.caller, None)
        session = await visible_session(
            call.services, call.caller, target, moment, pointer="/sessionKey"
        )
        if session.run_id is None:
            raise QueryError(
                "not_found",
                "nobody spawned that session here, so it takes no messages here; send to it on its"
                " own channel",
            )
        run = await call.services.work.run(session.run_id)
        run_id, label = str(run.run_id), run.label or session.session_key
    sent = await send_and_wait(call, run_id, label, message)
    view = ControlAnswer.model_validate({"action": "send", **sent})
    values = answer_of(view).values
    return ToolAnswer({name: value for name, value in values.items() if value is not None})


async def show_status(call: McpCall) -> ToolAnswer:
    """`session_status`. Without a key it is about the caller's own session."""
    spelling = text_argument(call.arguments, "sessionKey")
    key = call.session_key
    if spelling is not None:
        key = await resolve_session_key(call.services, call.caller, spelling, pointer="/sessionKey")
    try:
        found = (await get_session(call.services, call.caller, key, ReadAsOf())).view
    except QueryError as error:
        if error.code != "not_found" or key != call.session_key:
            raise
        return answer_of(SessionStatus(session_key=key, on_record=False, session=None))
    return answer_of(SessionStatus(session_key=key, on_record=True, session=found))

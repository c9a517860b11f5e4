"""`agents_list`, `shared_context_get`, `runs_explain` and `runs_at`: what may be spawned, what is
shared, why something was decided, and how it was at any moment."""

from application.queries.agents import ListAgents, list_agents
from application.queries.errors import QueryError
from application.queries.explain import explain_run
from application.queries.operation import ReadAsOf
from application.queries.runs import GetRun, ListRuns, get_run, list_runs
from application.queries.session_reference import UUID_TEXT
from application.queries.sessions import get_run_shared_context, get_shared_context
from application.queries.views.run import RunMetadataView, RunSummary, RunView
from application.queries.views.shared_context import RunSharedContextView, SharedContextView
from application.queries.views.view import View
from infrastructure.inbound.mcp.tools.call import (
    McpCall,
    ToolAnswer,
    answer_of,
    count_argument,
    required_text,
    text_argument,
)
from infrastructure.inbound.mcp.tools.family import find_target

RUNS_MAX = 200
RUNS_DEFAULT = 50


class SharedContextFound(View):
    """`given` is what the caller's run was started with of its family's context, null for a session
    that has no run here; `shared` what the session shares with its sub-agents, null before it has
    any."""

    given: RunSharedContextView | None
    shared: SharedContextView | None


class RunsAt(View):
    """The runs that a session had asked for, as they were at a position of the log."""

    position: int
    runs: list[RunSummary]
    run: RunView | RunMetadataView | None
    next_cursor: str | None


async def show_agents(call: McpCall) -> ToolAnswer:
    """`agents_list`."""
    query = ListAgents(requester=call.session_key)
    return answer_of((await list_agents(call.services, call.caller, query)).view)


async def show_shared_context(call: McpCall) -> ToolAnswer:
    """`shared_context_get`."""
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
    return answer_of(SharedContextFound(given=given, shared=shared))


async def explain(call: McpCall) -> ToolAnswer:
    """`runs_explain`."""
    run_id = await _run_id(call, required_text(call.arguments, "runId", "target"))
    return answer_of((await explain_run(call.services, call.caller, run_id, ReadAsOf())).view)


async def _run_id(call: McpCall, name: str) -> str:
    """The id that is given, or that of the sub-agent that is meant."""
    if UUID_TEXT.fullmatch(name):
        return name
    return (await find_target(call, name)).run_id


async def show_runs_at(call: McpCall) -> ToolAnswer:
    """`runs_at`. Without a run it is about all that the session had asked for."""
    at = required_text(call.arguments, "at")
    name = text_argument(call.arguments, "runId")
    if name is not None:
        run_id = await _run_id(call, name)
        one = await get_run(call.services, call.caller, run_id, GetRun(at=at))
        return answer_of(RunsAt(position=one.position, runs=[], run=one.view, next_cursor=None))
    limit = count_argument(call.arguments, "limit", RUNS_DEFAULT, RUNS_MAX)
    page = await list_runs(
        call.services,
        call.caller,
        ListRuns(
            requester=call.session_key,
            at=None if text_argument(call.arguments, "cursor") else at,
            limit=limit,
            cursor=text_argument(call.arguments, "cursor"),
        ),
    )
    view = RunsAt(
        position=page.position, runs=page.view.items, run=None, next_cursor=page.view.next_cursor
    )
    return answer_of(view)

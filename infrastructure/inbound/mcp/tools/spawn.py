"""`sessions_spawn` and `sessions_yield`: delegate work, and end the turn to wait for it."""

from typing import Any, Literal, cast
from uuid import UUID

from pydantic import Field, ValidationError

from application.commands.control import require_service
from application.commands.spawn import submit_spawn
from application.commands.yielding import YieldBody, yield_session
from application.log.answers import (
    AcceptedBatch,
    AcceptedBatchOfOne,
    AcceptedSpawn,
    YieldedAnswer,
)
from application.log.event_log import StoredAnswer
from application.queries.access import require_scope
from application.queries.errors import validation_problem
from application.queries.views.view import View
from domain.context.fork import INBOX_NOTE, TOOL_NOTE
from domain.plan.tools import SPAWN_TOOL, YIELD_TOOL
from domain.run.continuation import CannotYield
from domain.spawn.request import SpawnRequest
from infrastructure.inbound.mcp.tools.arguments import ToolArguments
from infrastructure.inbound.mcp.tools.call import McpCall, ToolAnswer, answered_once
from infrastructure.inbound.mcp.tools.offered import tool
from infrastructure.inbound.mcp.tools.spawn_arguments import (
    ALSO_READ,
    DELIVERY_KEYS,
    ToolRefusal,
    ToolSpawn,
    read_tool_arguments,
    tool_schema,
    with_role,
)

MESSAGE_CHARACTERS_MAX = 2000


class RefusedSpawn(View):
    """A refused spawn, recorded with its run. `role` is the requested agent."""

    status: Literal["forbidden", "error"]
    error: str
    rule: str | None = None
    run_id: UUID | None = None
    child_session_key: str | None = None
    limit: int | None = None
    current: int | None = None
    batch_id: UUID | None = None
    role: str | None = None


@tool(
    SPAWN_TOOL,
    title="Spawn a sub-agent",
    description=(
        "Delegate a task to a sub-agent with its own session. Returns when the task is accepted,"
        " before it is done; the result is announced to your session. Status forbidden or error"
        " means that it was refused, with the reason."
    ),
    scope="spawn",
    output=AcceptedBatchOfOne | AcceptedSpawn | AcceptedBatch | RefusedSpawn,
    reads=False,
    schema=tool_schema,
    also_read=ALSO_READ,
    refuses=DELIVERY_KEYS,
)
async def spawn(call: McpCall) -> ToolAnswer:
    """Implement `sessions_spawn`. A refusal is recorded, and is an answer and not an error."""
    require_scope(call.caller, "spawn")
    require_service(call.services)
    arguments = read_tool_arguments(call.arguments)
    if isinstance(arguments, ToolRefusal):
        return ToolAnswer(
            with_role({"status": arguments.status, "error": arguments.error}, arguments.role)
        )
    values = arguments.body(call.session_key)
    try:
        body = SpawnRequest.model_validate(values)
    except ValidationError as failure:
        raise validation_problem(failure, values) from None
    # The session key is canonical already, whatever its spelling means today.
    answer = await answered_once(
        call, submit_spawn(call.services, call.caller, body, call.session_key, call.command)
    )
    return _spawn_answer(call, answer, arguments)


def _spawn_answer(call: McpCall, answer: StoredAnswer, arguments: ToolSpawn) -> ToolAnswer:
    body = dict(answer.body)
    if answer.kind != "accepted":
        refused = {"status": answer.kind, "error": body.pop("text"), **body}
        given = {name: value for name, value in refused.items() if value is not None}
        return ToolAnswer(with_role(given, arguments.agent_id))
    warnings = [f'"{name}" has no effect here' for name in arguments.unused]
    runs: list[dict[str, Any]] = [dict(run) for run in cast("list[dict[str, Any]]", body["runs"])]
    if warnings:
        runs = [{**run, "warnings": [*run["warnings"], *warnings]} for run in runs]
        body = {**body, "runs": runs}
        if "warnings" in body:
            body["warnings"] = runs[0]["warnings"]
    if call.caller.run_id is None:
        # This caller reads its inbox with the tools only.
        runs = [{**run, "note": _for_the_tools(run["note"])} for run in runs]
        body = {**body, "runs": runs}
        if "note" in body:
            body["note"] = runs[0]["note"]
    return ToolAnswer(body, run_id=str(runs[0]["runId"]) if len(runs) == 1 else None)


def _for_the_tools(note: object) -> object:
    return note.replace(INBOX_NOTE, TOOL_NOTE) if isinstance(note, str) else note


class Yield(ToolArguments):
    """Arguments of `sessions_yield`."""

    message: str | None = Field(
        None,
        description="Repeated in the answer.",
        json_schema_extra={"maxLength": MESSAGE_CHARACTERS_MAX},
    )


@tool(
    YIELD_TOOL,
    title="End the turn and wait for sub-agents",
    description=(
        "End your turn now. When your sub-agents are done, your session is woken with their"
        " reports as its next message. Only for a session that was spawned here; others wait with"
        " subagents_wait."
    ),
    scope="spawn",
    output=YieldedAnswer,
    reads=False,
)
async def yield_turn(call: McpCall, arguments: Yield) -> ToolAnswer:
    """Implement `sessions_yield`. Refuse a session without a run: nothing could wake it."""
    require_scope(call.caller, "spawn")
    message = arguments.message[:MESSAGE_CHARACTERS_MAX] if arguments.message else None
    body = YieldBody(message=message)
    try:
        answer = await answered_once(
            call, yield_session(call.services, call.caller, call.session_key, body, call.command)
        )
    except CannotYield as why:
        session = await call.services.work.registry.session(call.session_key)
        if session is None or session.run_id is not None:
            raise
        raise CannotYield(f"{why}. Wait with subagents_wait instead.") from None
    return ToolAnswer(answer.body)

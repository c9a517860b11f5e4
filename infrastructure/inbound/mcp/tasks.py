"""Tasks of the extension `io.modelcontextprotocol/tasks`: a task is a run and has its id.

Only the run is stored, so a task outlives connections and servers.

A caller declares with each call that it follows tasks. A task then answers an accepted spawn, or a
wait for one run, instead of the result. `tasks/cancel` stops the run. `tasks/update` is refused: no
run asks its requester for input.
"""

from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    RequestParams,
)
from pydantic import ConfigDict, Field

from application.commands.services import CommandServices
from application.commands.stop import StopBody, stop_run
from application.queries.access import require_scope
from application.queries.as_of import resolve_as_of
from application.queries.errors import QueryError
from application.queries.runs import visible_run
from domain.run.state import Run
from infrastructure.inbound.mcp.requests import request_of
from infrastructure.inbound.mcp.tools.call import McpCall
from infrastructure.inbound.mcp.tools.family import is_over, newest_of_session
from infrastructure.inbound.mcp.tools.subagents import answer_after_wait

EXTENSION = "io.modelcontextprotocol/tasks"
VERSIONS = frozenset({"2026-07-28"})
POLL_INTERVAL_MS = 1_000
_NO_TASK = "task not found, or not visible to this token"
_NO_INPUT = "this task takes no input; to steer its run, call subagents with action steer"

RequestContext = ServerRequestContext[Any, Any]


class TaskParams(RequestParams):
    """Parameters that name a task."""

    model_config = ConfigDict(extra="ignore")
    task_id: str = Field(alias="taskId", max_length=64)


class RunTasks:
    """Handlers of the extension's methods."""

    def __init__(self, services: CommandServices) -> None:
        self._services = services

    def add_to(self, server: Server[Any]) -> None:
        """Register the methods and declare the extension."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, self._get)
        server.add_request_handler("tasks/update", TaskParams, self._update)
        server.add_request_handler("tasks/cancel", TaskParams, self._cancel)

    def is_wanted(self, context: RequestContext) -> bool:
        """Return True if the caller declared support for tasks."""
        if context.protocol_version not in VERSIONS:
            return False
        declared = context.session.client_capabilities
        return declared is not None and EXTENSION in (declared.extensions or {})

    def require(self, context: RequestContext) -> None:
        """Raise `MCPError` unless the caller declared support for tasks."""
        if not self.is_wanted(context):
            raise MCPError(
                MISSING_REQUIRED_CLIENT_CAPABILITY,
                f"tasks need a client of protocol {', '.join(VERSIONS)} that declares the"
                f" extension {EXTENSION} in its capabilities",
                {"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
            )

    async def created(self, call: McpCall, run_id: str) -> dict[str, Any]:
        """Return the task that answers a call instead of its result."""
        require_scope(call.caller, "read")
        moment = await resolve_as_of(self._services, call.caller, None)
        run = await visible_run(self._services, call.caller, run_id, moment)
        return {"resultType": "task", **await self._task(call, run)}

    async def _get(self, context: RequestContext, params: TaskParams) -> dict[str, Any]:
        call, run = await self._found(context, params)
        return await self._task(call, run)

    async def _update(self, context: RequestContext, params: TaskParams) -> dict[str, Any]:
        await self._found(context, params)
        raise MCPError(INVALID_PARAMS, _NO_INPUT, {"code": "invalid_request"})

    async def _cancel(self, context: RequestContext, params: TaskParams) -> dict[str, Any]:
        call, run = await self._found(context, params)
        body = StopBody(reason="its task was cancelled")
        await stop_run(self._services, call.caller, str(run.run_id), body, call.command)
        return {}

    async def _found(self, context: RequestContext, params: TaskParams) -> tuple[McpCall, Run]:
        """Return the call and the run of a task. Refuse a run that the token does not cover."""
        self.require(context)
        request = request_of(context)
        if decode_header_value(request.headers.get(MCP_NAME_HEADER)) != params.task_id:
            raise MCPError(HEADER_MISMATCH, "the header Mcp-Name must be the taskId")
        require_scope(request.caller, "read")
        call = await request.call(self._services)
        moment = await resolve_as_of(self._services, request.caller, None)
        try:
            run = await visible_run(self._services, request.caller, params.task_id, moment)
        except QueryError as error:
            if error.code != "not_found":
                raise
            raise QueryError("not_found", _NO_TASK) from None
        if not await self._services.access.covers_run(request.caller, run):
            raise QueryError("not_found", _NO_TASK)
        return call, run

    async def _task(self, call: McpCall, run: Run) -> dict[str, Any]:
        """Return a task with the state of the newest run in its session."""
        newest = await newest_of_session(call, run)
        stages = await self._services.run_bars.stages({newest.run_id: newest.version})
        reached = stages[newest.run_id]
        changed = reached[-1].at if reached else newest.created_at
        task: dict[str, Any] = {
            "taskId": str(run.run_id),
            "status": "working",
            "statusMessage": newest.stage,
            "createdAt": run.created_at.isoformat(),
            "lastUpdatedAt": changed.isoformat(),
            "ttlMs": None,
            "pollIntervalMs": POLL_INTERVAL_MS,
        }
        if not is_over(newest):
            return task
        if newest.outcome == "stopped":
            return {**task, "status": "cancelled"}
        answer = await answer_after_wait(call, run)
        result = {
            "resultType": "complete",
            "content": [{"type": "text", "text": answer.shown}],
            "structuredContent": dict(answer.values),
            "isError": newest.outcome != "success",
        }
        return {**task, "status": "completed", "result": result}

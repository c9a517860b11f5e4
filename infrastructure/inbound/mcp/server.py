"""The MCP server. Imported with the first request, because the SDK takes most of a second."""

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import orjson
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextContent,
    Tool,
    ToolAnnotations,
)

from application.commands.context import known_traceparent
from application.commands.idempotency import reserve
from application.commands.services import CommandServices
from application.log.envelope import WRITER_VERSION
from application.queries.errors import QueryError
from domain.plan.tools import SPAWN_TOOL
from domain.run.facts import Plan
from infrastructure.inbound.mcp.errors import ANSWERED, answer_errors, failure_of
from infrastructure.inbound.mcp.requests import IDEMPOTENCY_KEY, McpRequest, request_of
from infrastructure.inbound.mcp.resources import list_resources, read_resource, resource_templates
from infrastructure.inbound.mcp.tasks import RequestContext, RunTasks
from infrastructure.inbound.mcp.tools.call import McpCall
from infrastructure.inbound.mcp.tools.catalogue import (
    TOOLS,
    TOOLS_BY_NAME,
    denied_name,
    offered_tools,
)
from infrastructure.inbound.mcp.tools.offered import OfferedTool

NAME = "spawnlog"
INSTRUCTIONS = (
    "spawnlog runs sub-agents for you and records them. Delegate work with sessions_spawn; it"
    " returns when the work is accepted, not when it is done. If your session was spawned here,"
    " end your turn with sessions_yield: you are woken with the reports of your sub-agents."
    " Otherwise wait with subagents_wait. Do not poll."
)


class McpMethods:
    """Handlers of the protocol's methods."""

    def __init__(self, services: CommandServices) -> None:
        self._services = services
        self._tasks = RunTasks(services)

    def server(self) -> Server[Any]:
        """Return the SDK's server. Its own spans are disabled: the log provides those of a tree."""
        server: Server[Any] = Server(
            NAME,
            version=WRITER_VERSION,
            title="spawnlog",
            instructions=INSTRUCTIONS,
            # No tool argument is sent as a header.
            get_tool_input_schema=lambda _: None,
            on_list_tools=self._list_tools,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
        )
        # A result may be a task, which the core protocol does not define.
        server.add_request_handler("tools/call", CallToolRequestParams, self._call_tool)
        server.middleware[:] = [answer_errors]
        self._tasks.add_to(server)
        return server

    async def _list_tools(
        self, context: RequestContext, _: PaginatedRequestParams | None
    ) -> ListToolsResult:
        request = request_of(context)
        plan = await self._plan(request)
        return ListToolsResult(
            tools=[self._described(tool) for tool in offered_tools(request.caller, plan)]
        )

    def _described(self, tool: OfferedTool) -> Tool:
        """Describe a tool. The spawn tool offers a thread if a hook binds children to threads."""
        hooks = self._services.work.configurations.current().configuration.spawnlog.hooks
        return _described(tool.name, threads=hooks.subagent_spawning is not None)

    async def _plan(self, request: McpRequest) -> Plan | None:
        """Return the plan of the caller's run, or None if its session was not spawned here."""
        if request.caller.run_id is None:
            return None
        return (await self._services.work.run(request.caller.run_id)).plan

    async def _call_tool(
        self, context: RequestContext, params: CallToolRequestParams
    ) -> CallToolResult | dict[str, Any]:
        tool = TOOLS_BY_NAME.get(params.name)
        if tool is None:
            names = ", ".join(known.name for known in TOOLS)
            raise MCPError(INVALID_PARAMS, f"unknown tool; tools: {names}")
        request = request_of(context)
        try:
            call = await self._call(context, request, tool, params.arguments or {})
            await self._require_tool(request, tool)
            tool.require_known(call.arguments)
            answer = await tool.answers(call)
        except ANSWERED as error:
            failure = orjson.dumps(failure_of(error), default=str)
            return _result(failure.decode(), orjson.loads(failure), is_error=True)
        if answer.run_id is not None and call.follows_tasks:
            return await self._tasks.created(call, answer.run_id)
        return _result(answer.shown, answer.values, is_error=False)

    async def _require_tool(self, request: McpRequest, tool: OfferedTool) -> None:
        """Refuse a tool that the session's tool policy denies, and record the refusal.

        A spawn is skipped: its tool policy is checked and recorded with the other rules of a spawn.
        """
        if tool.name == SPAWN_TOOL or request.caller.run_id is None:
            return
        denied = denied_name(tool, await self._plan(request))
        if denied is not None:
            await self._services.tool_policy.require_permission(
                request.caller.run_id, denied, request.caller.actor
            )

    async def _call(
        self,
        context: RequestContext,
        request: McpRequest,
        tool: OfferedTool,
        arguments: Mapping[str, object],
    ) -> McpCall:
        async def report(progress: float, message: str) -> None:
            await context.session.report_progress(progress, None, message)

        call = await request.call(self._services, arguments, report)
        meta = context.meta or {}
        key = meta.get(IDEMPOTENCY_KEY) or request.headers.get("idempotency-key")
        if key is not None and not isinstance(key, str):
            raise QueryError("invalid_request", f"_meta.{IDEMPOTENCY_KEY} must be a string")
        reservation = None
        if key is not None and not tool.reads:
            content = json.dumps([call.session_key, arguments], sort_keys=True, ensure_ascii=False)
            place = ("POST", f"/mcp/{tool.name}")
            reservation = reserve(request.caller, *place, key=key, content=content.encode())
        trace = meta.get("traceparent") or request.headers.get("traceparent")
        return replace(
            call,
            command=replace(
                call.command, reservation=reservation, traceparent=known_traceparent(trace)
            ),
            follows_tasks=self._tasks.is_wanted(context) and request.caller.may("read"),
        )

    async def _list_resources(
        self, context: RequestContext, _: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        request = request_of(context)
        key = await request.session_key(self._services)
        return await list_resources(self._services, request.caller, key)

    async def _list_templates(
        self, _context: RequestContext, _: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return resource_templates()

    async def _read_resource(
        self, context: RequestContext, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        return await read_resource(self._services, request_of(context).caller, str(params.uri))


def _result(text: str, values: Mapping[str, Any], *, is_error: bool) -> CallToolResult:
    """Return a tool result with structured values and the text of the same answer."""
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=dict(values),
        is_error=is_error,
    )


@cache
def _described(name: str, *, threads: bool) -> Tool:
    tool = TOOLS_BY_NAME[name]
    return Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema(threads=threads),
        output_schema=tool.output_schema(),
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads,
            destructive_hint=tool.destroys,
            idempotent_hint=tool.reads,
            open_world_hint=not tool.reads,
        ),
    )


def session_manager(
    services: CommandServices, *, body_bytes_max: int
) -> StreamableHTTPSessionManager:
    """Return the SDK's session manager for HTTP, with a server for these services."""
    logging.getLogger("mcp").setLevel(logging.WARNING)
    return StreamableHTTPSessionManager(
        McpMethods(services).server(), stateless=True, max_request_body_size=body_bytes_max
    )

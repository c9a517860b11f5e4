"""Tools of a model: those of spawnlog and of MCP servers, filtered by the tool policy of the child.

Imported only if a model is called, because its dependencies are large.
"""

from collections.abc import Mapping
from contextlib import AsyncExitStack

from pydantic_ai import RunContext
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset

from application.operations import OPERATIONS
from application.ports.runtimes import Launch, mcp_url
from domain.configuration.model_runtime import ModelRuntime, mcp_header_name, mcp_url_name
from domain.plan.tools import CONTROL_TOOL, SESSION_TOOLS, YIELD_TOOL, ToolPolicy
from infrastructure.outbound.runtimes.model_endpoint import TOOL_ANSWER_BYTES_MAX, bounded_client

CONNECT_SECONDS = 10.0

OWN_TOOLS = (
    *SESSION_TOOLS,
    YIELD_TOOL,
    CONTROL_TOOL,
    "subagents_wait",
    "shared_context_get",
    *{row.tool.name: None for row in OPERATIONS if row.tool is not None},
)
"""Tools that spawnlog offers to models. If the policy permits none of them, its server is not
contacted."""


Toolset = AbstractToolset[None]


class ToolsUnavailableError(Exception):
    """A tool server cannot be reached, or is not an MCP server."""


async def opened_tools(
    launch: Launch, runtime: ModelRuntime, connections: AsyncExitStack
) -> list[Toolset]:
    """Connect to all tool servers and return their tools.

    Tools of spawnlog keep their names; others get the name of their server as a prefix. Tools that
    the policy denies are neither shown nor callable.

    Args:
        launch: The launch.
        runtime: Its runtime.
        connections: Keeps the connections open.

    Raises:
        ToolsUnavailableError: A server cannot be reached.
    """
    policy = ToolPolicy(launch.tools_allow, launch.tools_deny)

    def permits(_: RunContext[None], tool: ToolDefinition) -> bool:
        return policy.permits(tool.name)

    toolsets: list[Toolset] = []
    url = mcp_url(launch)
    if url is not None and launch.token is not None and any(map(policy.permits, OWN_TOOLS)):
        headers = {"Authorization": f"Bearer {launch.token}"}
        own = await _server(url, headers, "spawnlog", runtime.tool_timeout_seconds, connections)
        toolsets.append(own.filtered(permits))
    for name, server in runtime.mcp_servers.items():
        if not server.is_used:
            continue
        values = launch.environment
        given = {header: values[mcp_header_name(name, header)] for header in server.headers}
        seconds = server.call_timeout_seconds or runtime.tool_timeout_seconds
        tools = await _server(values[mcp_url_name(name)], given, name, seconds, connections)
        toolsets.append(tools.prefixed(name).filtered(permits))
    return toolsets


async def _server(
    url: str,
    headers: Mapping[str, str],
    name: str,
    call_timeout_seconds: float,
    connections: AsyncExitStack,
) -> Toolset:
    client = await connections.enter_async_context(
        bounded_client(call_timeout_seconds, headers, bytes_max=TOOL_ANSWER_BYTES_MAX)
    )
    tools: MCPToolset[None] = MCPToolset(
        url,
        id=name,
        # Errors of tools go to the model. No tasks: the library would wait for their end.
        tool_error_behavior="failed",
        prefer_tasks=False,
        init_timeout=CONNECT_SECONDS,
        read_timeout=call_timeout_seconds,
        http_client=client,
    )
    try:
        await connections.enter_async_context(tools)
    except Exception as error:
        text = f"the tools of {name} are not available: {str(error) or type(error).__name__}"
        raise ToolsUnavailableError(text) from error
    return tools

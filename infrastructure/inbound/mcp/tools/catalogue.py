"""The tools that are offered to models."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from application.queries.access import Caller
from domain.plan.tools import permits_tool
from domain.run.facts import Plan
from infrastructure.inbound.mcp.tools import sessions, spawn, subagents
from infrastructure.inbound.mcp.tools.offered import OfferedTool, offered_by
from infrastructure.inbound.mcp.tools.rows import tools_of_rows

_FUNCTIONS: Sequence[Callable[..., Any]] = (
    spawn.spawn,
    spawn.yield_turn,
    subagents.control,
    subagents.wait,
    sessions.list_sessions,
    sessions.show_history,
    sessions.send_message,
    sessions.show_shared_context,
)
TOOLS: Sequence[OfferedTool] = (*map(offered_by, _FUNCTIONS), *tools_of_rows())
TOOLS_BY_NAME: Mapping[str, OfferedTool] = {tool.name: tool for tool in TOOLS}


def denied_name(tool: OfferedTool, plan: Plan | None) -> str | None:
    """Return the name of a tool that the plan of a session denies, or None if it permits the tool.

    Every tool is permitted to a session that was not spawned here (`plan` is None).
    """
    if plan is None:
        return None
    return next((name for name in tool.names_judged if not permits_tool(plan, name)), None)


def offered_tools(caller: Caller, plan: Plan | None) -> list[OfferedTool]:
    """Return the tools that the scopes of the token and the policy of the session permit."""
    return [tool for tool in TOOLS if caller.may(tool.scope) and denied_name(tool, plan) is None]

"""The tools that models are offered."""

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
TOOLS_BY_NAME: Mapping[str, OfferedTool] = {one.name: one for one in TOOLS}


def denied_name(tool: OfferedTool, plan: Plan | None) -> str | None:
    """Return the name for which a session with this plan may not use a tool; None if it may, as
    every session may that was not spawned here."""
    if plan is None:
        return None
    return next((one for one in tool.names_judged if not permits_tool(plan, one)), None)


def offered_tools(caller: Caller, plan: Plan | None) -> list[OfferedTool]:
    """Return the tools that the token is good for and the policy of the session leaves."""
    return [one for one in TOOLS if caller.may(one.scope) and denied_name(one, plan) is None]

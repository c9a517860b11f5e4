"""The tools that models are offered: their names, texts and shapes, and what answers a call."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from application.queries.access import AccessScope, Caller
from application.queries.agents import AgentListing
from application.queries.explain import ExplanationView
from domain.plan.tools import CONTROL_TOOL, SPAWN_TOOL, YIELD_TOOL, permits_tool
from domain.run.facts import Plan
from domain.values.moments import MOMENT_FORMS
from infrastructure.inbound.mcp.tools import record, sessions, spawn, subagents
from infrastructure.inbound.mcp.tools.call import McpCall, ToolAnswer
from infrastructure.inbound.mcp.tools.spawn_arguments import tool_schema

WAIT_TOOL = "subagents_wait"
Properties = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTool:
    """A tool. `scope` is what a token needs to see it; `judged_as` are the names that the tool
    policy of a session has to leave for it. `reads` changes nothing, `destroys` ends what
    others are at."""

    name: str
    title: str
    description: str
    scope: AccessScope
    answers: Callable[[McpCall], Awaitable[ToolAnswer]]
    properties: Properties
    required: Sequence[str] = ()
    output: Any
    judged_as: tuple[str, ...] = ()
    reads: bool = True
    destroys: bool = False

    @property
    def names_judged(self) -> tuple[str, ...]:
        """Its own name, and those of the tools that it is a part of."""
        return (self.name, *self.judged_as)

    def input_schema(self, *, threads: bool) -> dict[str, Any]:
        """The shape of its arguments. What is unknown is left aside, as models expect of tools.
        `threads` is whether a child can be bound to a thread."""
        if self.name == SPAWN_TOOL:
            return dict(tool_schema(threads=threads))
        return {
            "type": "object",
            "properties": {name: dict(one) for name, one in self.properties.items()},
            **({"required": list(self.required)} if self.required else {}),
        }

    def output_schema(self) -> dict[str, Any]:
        """The shapes of what it answers; an object always. That of a refusal is among them: clients
        hold each result against them."""
        return {"type": "object", "anyOf": [*_brief_schemas(self.output), _FAILURE]}


_FAILURE = {
    "type": "object",
    "properties": {
        "status": {"type": "string", "enum": ["error", "forbidden"]},
        "error": {"type": "string"},
        "code": {"type": "string"},
    },
    "required": ["status", "error"],
}


@cache
def _brief_schemas(output: Any) -> list[dict[str, Any]]:
    """What an answer has, and of its members how they are called and what they are. What stands in
    them is the views of HTTP, whose shapes are in `/openapi.json`: here a model would have to read
    a hundred kilobytes of them."""
    whole = TypeAdapter(output).json_schema(mode="serialization", by_alias=True)
    kinds: Mapping[str, Any] = whole.get("$defs", {})
    if "anyOf" not in whole:
        return [_brief(whole)]
    return [_brief(kinds[one["$ref"].rpartition("/")[2]]) for one in whole["anyOf"]]


def _brief(schema: Mapping[str, Any]) -> dict[str, Any]:
    members = {name: _member(one) for name, one in schema.get("properties", {}).items()}
    required = [name for name in schema.get("required", ()) if name in members]
    return {"type": "object", "properties": members, "required": required}


def _member(schema: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return {"type": "object"}
    if "anyOf" in schema:
        kinds = [_member(one) for one in schema["anyOf"]]
        return {"anyOf": [one for at, one in enumerate(kinds) if one not in kinds[:at]]}
    kept = {name: schema[name] for name in ("type", "const", "enum") if name in schema}
    return {**kept, **({"items": _member(schema["items"])} if "items" in schema else {})}


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def _number(description: str, least: float, most: float) -> dict[str, Any]:
    return {"type": "number", "minimum": least, "maximum": most, "description": description}


_TARGET = (
    "Which sub-agent: the number in the list, its label or the beginning of it, its session key,"
    " its run id or the beginning of it, or last."
)
_SESSION = "The session, by its key or id. Without one your own."

TOOLS: Sequence[OfferedTool] = (
    OfferedTool(
        name=SPAWN_TOOL,
        title="Spawn a sub-agent",
        description=(
            "Hand a task to a sub-agent that works in a session of its own. Answered when it is"
            " accepted, long before it is done: its result is announced to your session. Status"
            " forbidden or error says why it was not taken, and is on record."
        ),
        scope="spawn",
        answers=spawn.spawn,
        properties={},
        output=spawn.SpawnOutput,
        reads=False,
    ),
    OfferedTool(
        name=YIELD_TOOL,
        title="End the turn and wait for sub-agents",
        description=(
            "End your turn now. When your sub-agents are done your session is woken with what they"
            " report as its next message. For a session that was spawned here; any other waits with"
            " subagents_wait."
        ),
        scope="spawn",
        answers=spawn.yield_turn,
        properties={"message": _text("Said again in the answer.", maxLength=2000)},
        output=spawn.YieldOutput,
        reads=False,
    ),
    OfferedTool(
        name=CONTROL_TOOL,
        title="Look after sub-agents",
        description=(
            "List your sub-agents (list), read what one said (log) or all that is known of it"
            " (info), send it a message (send), end what it is at and have it do something else"
            " (steer), or stop it and all below it (stop, kill; target all for every one)."
        ),
        scope="read",
        answers=subagents.control,
        properties={
            "action": _text(
                "Without one it lists.",
                enum=["list", "log", "info", "send", "steer", "stop", "kill"],
            ),
            "target": _text(_TARGET),
            "message": _text("What to say, for send and steer."),
            "recentMinutes": _number("For list: how long ago one may have ended.", 1, 1440),
            "limit": _number("For log: how many entries.", 1, subagents.LOG_ENTRIES_MAX),
            "tools": {"type": "boolean", "description": "For log: calls of tools too."},
            "timeoutSeconds": _number(
                "For send: how long to wait for its answer.", 0, subagents.REPLY_SECONDS_MAX
            ),
        },
        output=subagents.SubagentsOutput,
        reads=False,
        destroys=True,
    ),
    OfferedTool(
        name=WAIT_TOOL,
        title="Wait for sub-agents",
        description=(
            "Wait until sub-agents are done, and read what they report: all that are at work, or"
            " the targets. What was reported before comes too, until you say with after"
            " how far you have read. Status waiting says that the time was over first: wait again."
            " That you stop waiting stops none of them."
        ),
        scope="read",
        answers=subagents.wait,
        properties={
            "targets": {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": subagents.TARGETS_MAX,
                "description": _TARGET,
            },
            "until": _text("all of them (without it), or any one.", enum=["all", "any"]),
            "timeoutSeconds": _number(
                "How long at most; 45 without it.", 0, subagents.WAIT_SECONDS_MAX
            ),
            "after": {
                "type": "integer",
                "minimum": 0,
                "description": (
                    "after of the answer before: reports up to there were read, and are not given"
                    " again."
                ),
            },
        },
        output=subagents.WaitAnswer,
        judged_as=(CONTROL_TOOL,),
        reads=False,
    ),
    OfferedTool(
        name="sessions_list",
        title="List sessions",
        description="The sessions that yours has spawned, the newest first.",
        scope="read",
        answers=sessions.list_sessions,
        properties={
            "limit": _number("How many.", 1, sessions.SESSIONS_MAX),
            "activeMinutes": _number("Only those that something happened in since.", 1, 1_000_000),
            "messageLimit": _number("So many of the last messages of each.", 0, 20),
        },
        output=sessions.SessionList,
    ),
    OfferedTool(
        name="sessions_history",
        title="Read a session",
        description="What was said in a session last: your own, or one below it.",
        scope="content",
        answers=sessions.show_history,
        properties={
            "sessionKey": _text(_SESSION),
            "limit": _number("How many entries.", 1, sessions.HISTORY_ENTRIES_MAX),
            "includeTools": {"type": "boolean", "description": "Calls of tools too."},
        },
        output=sessions.SessionHistory,
    ),
    OfferedTool(
        name="sessions_send",
        title="Send a message to a session",
        description=(
            "A message to a session below yours. It goes on with it, at once or behind what it is"
            " at; answered with its reply when that comes in time."
        ),
        scope="control",
        answers=sessions.send_message,
        properties={
            "sessionKey": _text("The session, by its key or id."),
            "label": _text("In place of the key: the label of a sub-agent."),
            "message": _text("What to say."),
            "timeoutSeconds": _number(
                "How long to wait for its reply; 0 for none.", 0, subagents.REPLY_SECONDS_MAX
            ),
        },
        required=("message",),
        output=subagents.ControlAnswer,
        reads=False,
    ),
    OfferedTool(
        name="session_status",
        title="Look at a session",
        description="What is on record of a session: depth, role, children, model, what waits.",
        scope="read",
        answers=sessions.show_status,
        properties={"sessionKey": _text(_SESSION)},
        output=sessions.SessionStatus,
    ),
    OfferedTool(
        name="agents_list",
        title="List agents",
        description="The agents that sessions_spawn may name in agentId.",
        scope="read",
        answers=record.show_agents,
        properties={},
        output=AgentListing,
    ),
    OfferedTool(
        name="shared_context_get",
        title="Read shared context",
        description="What your session was given to share, and what it shares with its sub-agents.",
        scope="content",
        answers=record.show_shared_context,
        properties={},
        output=record.SharedContextFound,
    ),
    OfferedTool(
        name="runs_explain",
        title="Explain a run",
        description=(
            "Why a spawn was accepted or refused, with the rules, what each compared, and the"
            " configuration that held."
        ),
        scope="read",
        answers=record.explain,
        properties={"runId": _text("The run's id. " + _TARGET)},
        required=("runId",),
        output=ExplanationView,
    ),
    OfferedTool(
        name="runs_at",
        title="Look at a past moment",
        description="The runs that your session had asked for, or one run, as of any moment.",
        scope="read",
        answers=record.show_runs_at,
        properties={
            "at": _text(f"The moment: {MOMENT_FORMS}."),
            "runId": _text("One run alone, by its id. " + _TARGET),
            "limit": _number("How many.", 1, record.RUNS_MAX),
            "cursor": _text("The nextCursor of the page before."),
        },
        required=("at",),
        output=record.RunsAt,
    ),
)
TOOLS_BY_NAME: Mapping[str, OfferedTool] = {one.name: one for one in TOOLS}


def denied_name(tool: OfferedTool, plan: Plan | None) -> str | None:
    """The name for which a session with this plan may not use a tool; None when it may, as every
    session may that nobody spawned here."""
    if plan is None:
        return None
    return next((one for one in tool.names_judged if not permits_tool(plan, one)), None)


def offered_tools(caller: Caller, plan: Plan | None) -> list[OfferedTool]:
    """The tools that a caller sees: those that its token is good for, and that the policy of its
    session leaves."""
    return [one for one in TOOLS if caller.may(one.scope) and denied_name(one, plan) is None]

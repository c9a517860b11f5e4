"""Tool policy of a child: the last of all tool filters, which can only remove tools."""

from collections.abc import Iterable
from dataclasses import dataclass

from domain.run.facts import Plan
from domain.values.role import Role

SPAWN_TOOL = "sessions_spawn"
YIELD_TOOL = "sessions_yield"
CONTROL_TOOL = "subagents"
SESSION_TOOLS = ("sessions_list", "sessions_history", "sessions_send", SPAWN_TOOL)
ORCHESTRATOR_TOOLS = frozenset({"sessions_spawn", "sessions_list", "sessions_history"})

# Tools that children are denied if the configuration has no `deny` list.
DEFAULT_DENY = ("gateway", "agents_list", "session_status", "cron")
LEAF_DEFAULT_DENY = (*DEFAULT_DENY, "subagents")
GROUPS = {
    "group:sessions": (*SESSION_TOOLS, "sessions_yield", "subagents", "session_status"),
    "group:fs": ("read", "write", "edit", "apply_patch"),
    "group:runtime": ("exec", "process", "code_execution"),
    "group:web": ("web_search", "web_fetch"),
    "group:memory": ("memory_search", "memory_get"),
    "group:ui": ("browser", "canvas"),
    "group:automation": ("cron", "gateway"),
    "group:messaging": ("message",),
    "group:nodes": ("nodes",),
    "group:agents": ("agents_list",),
}
_ALIASES = {"bash": "exec", "apply-patch": "apply_patch"}
_IMPLIED_BY = {"apply_patch": "write"}


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """Allowed and denied tools. `deny` wins.

    Entries are lower-case names in which `*` matches any text; `write` also covers `apply_patch`. A
    `group:…` that is not in `GROUPS` is kept for the runtime, which knows its members.

    Attributes:
        allow: Allowed tools; None allows every tool that is not denied.
        deny: Denied tools.
    """

    allow: tuple[str, ...] | None
    deny: tuple[str, ...]

    def permits(self, tool: str) -> bool:
        """Return True if a tool may be used. `apply_patch` matches entries for either `apply_patch`
        or `write`.
        """
        name = _name(tool)
        names = {name, _IMPLIED_BY.get(name, name)}
        if any(_matches(pattern, alias) for pattern in self.deny for alias in names):
            return False
        if self.allow is None:
            return True
        return any(_matches(pattern, alias) for pattern in self.allow for alias in names)


def permits_tool(plan: Plan, tool: str) -> bool:
    """Return True if a child with this plan may use the tool."""
    return ToolPolicy(plan.tools_allow, plan.tools_deny).permits(tool)


def tool_policy(
    role: Role,
    *,
    allow: Iterable[str] | None = None,
    also_allow: Iterable[str] | None = None,
    deny: Iterable[str] | None = None,
) -> ToolPolicy:
    """Return the policy for a child of this role under the configured lists.

    The session tools are denied, except that an orchestrator keeps spawn, list and history. The
    default deny list also applies, unless `deny` is given (even empty). Neither denies a tool that
    `allow` or `also_allow` names; `deny` always does.

    Args:
        role: Role of the child.
        allow: Allowed tools; if empty, all tools are allowed.
        also_allow: Tools added to `allow`; it does not restrict by itself.
        deny: Denied tools; None applies the default deny list.
    """
    allow, also_allow = tuple(allow or ()), tuple(also_allow or ())
    allowed, also_allowed = _names(allow), _names(also_allow)
    named = {_name(text) for text in (*allow, *also_allow)}
    is_leaf = role == "leaf"
    given_back = frozenset() if is_leaf else ORCHESTRATOR_TOOLS
    by_default = (LEAF_DEFAULT_DENY if is_leaf else DEFAULT_DENY) if deny is None else ()
    built_in = [
        tool
        for tool in (*SESSION_TOOLS, *by_default)
        if tool not in given_back and tool not in named
    ]
    return ToolPolicy(
        allow=tuple(dict.fromkeys((*allowed, *also_allowed))) if allowed else None,
        deny=tuple(dict.fromkeys((*built_in, *_names(deny)))),
    )


def _name(text: str) -> str:
    plain = text.strip().lower()
    return _ALIASES.get(plain, plain)


def _names(texts: Iterable[str] | None) -> tuple[str, ...]:
    plain = [_name(text) for text in texts or ()]
    members = [member for name in plain for member in GROUPS.get(name, (name,))]
    return tuple(dict.fromkeys(member for member in members if member))


def _matches(pattern: str, name: str) -> bool:
    """Match the whole name, where `*` is any text. Takes linear time."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == name
    if not name.startswith(first):
        return False
    at = len(first)
    *middle, last = rest
    for piece in middle:
        found = name.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return name.endswith(last) and len(name) - len(last) >= at

"""Texts and values of plans, written a second time: inputs, results and messages.

Nothing of `domain` is used: if a text changes there, it must be changed here as well.
"""

from typing import Any, NamedTuple

WORKSPACES = "data/workspaces"
SERVED = ("command", "scripted", "model", "external")
BOXED = {"type": "command", "command": ["true"], "providesSandbox": True}
RUNTIMES: dict[str, dict[str, Any]] = {
    "plain": {"type": "scripted"},
    "boxed": BOXED,
    "boxed few": {**BOXED, "models": ["small", "q/fast"]},
    "p": {"type": "scripted", "models": ["p/*"], "providesSandbox": True},
    "nested": {"type": "command", "command": ["true"], "models": ["openrouter/x/*", "p/big"]},
    "all": {"type": "scripted", "models": ["*"]},
    "nothing": {"type": "scripted", "models": []},
    "worker": {"type": "worker", "queue": "far", "models": ["p/*"]},
    "model": {"type": "model"},
    "embedded": {"type": "embedded"},
    "acp": {"type": "acp"},
}


"""Possible runtimes."""


ODD = {"odd\x07name": "odd name", "y" * 300: "y" * 99 + "…"}
"""Configurable texts that are not names of models, and how they are shown."""
MODELS = (
    "p/big",
    "p/small",
    "q/fast",
    "solo",
    "small",
    "Quick",
    "openrouter/x/deep",
    "/lead",
    "tail/",
    "p/" + "z" * 150,
)
FREE_TEXT = ("a model, please", "größer", "...", "fast ONE")
"""Requested texts that have not the form of a model's name; `fast ONE` may be an alias."""
ALIASES = (
    (),
    (("Quick", "p/small"), ("Fast One", "q/fast")),
    (("quick", "openrouter/x/deep"), (" QUICK ", "p/big")),
)
PRICED = "p/small"
PRICES = (1.5, 6.0)
PROVIDERS = {
    "p": {"models": [{"id": "small", "name": "Small", "cost": {"input": 1.5, "output": 6}}]}
}
PLACES = {
    "argument": "the model argument",
    "agent_subagents": "the agent's subagents.model",
    "defaults_subagents": "agents.defaults.subagents.model",
    "caller": "the caller's active model",
    "agent": "the agent's model",
    "defaults": "agents.defaults.model",
}


"""Places that may name a model, in order of precedence, and their names in messages."""


SESSION_TOOLS = ("sessions_list", "sessions_history", "sessions_send", "sessions_spawn")
OTHER_TOOLS = ("gateway", "agents_list", "session_status", "cron")


class Tools(NamedTuple):
    """A tool list as in a file, and the tools denied to leaves and to orchestrators."""

    section: dict[str, Any]
    leaf: tuple[str, ...]
    orchestrator: tuple[str, ...]
    allow: tuple[str, ...] | None = None


TOOLS = {
    "silent": Tools(
        {}, (*SESSION_TOOLS, *OTHER_TOOLS, "subagents"), ("sessions_send", *OTHER_TOOLS)
    ),
    "denied": Tools(
        {"deny": ["Bash", "group:agents"]},
        (*SESSION_TOOLS, "exec", "agents_list"),
        ("sessions_send", "exec", "agents_list"),
    ),
    "allowed": Tools(
        {"allow": ["read", "cron", "sessions_send"], "deny": []},
        ("sessions_list", "sessions_history", "sessions_spawn"),
        (),
        ("read", "cron", "sessions_send"),
    ),
}
SECONDS_MAX = 2_147_000
UNNAMED = "The requested model is not a valid model name and was skipped."
TOO_LONG = "runTimeoutSeconds was reduced to 2147000, the maximum; 0 means no limit."


def no_limit(given: float) -> str:
    """Return the warning about a timeout that was rounded down to none."""
    return (
        f"runTimeoutSeconds {given:g} was rounded down to 0, which means no limit. Request 1 or"
        " more for a limit."
    )


WOULD_ESCAPE = (
    "Sandboxed sessions cannot spawn unsandboxed subagents. "
    "Set a sandboxed target agent or use the same agent runtime."
)
NOT_SANDBOXED = (
    'sessions_spawn sandbox="require" needs a sandboxed target runtime. '
    'Pick a sandboxed agentId or use sandbox="inherit".'
)
LEADS_ELSEWHERE = (
    "The workspace recorded for the requester is now a link to another folder. Replace the link"
    " with the folder, or ask from another session."
)
NOT_IN_RECORDED = (
    "The workspace that the request names is outside the one recorded for its requester. Name a"
    " folder inside it, or leave workspaceDir out."
)
BELOW_NO_ROOT = (
    "The workspace that the request names is not below a configured root. "
    "Add its root to spawnlog.workspaceRoots, or leave workspaceDir out."
)


def no_sandbox(agent: str, mode: str) -> str:
    """Return the refusal of an agent whose runtime does not provide the required sandbox."""
    return (
        f'Agent "{agent}" must run in a sandbox (sandbox.mode "{mode}"), but its runtime does'
        " not provide one. Set providesSandbox on a runtime that isolates itself, or"
        ' sandbox.mode to "off".'
    )


def not_served(agent: str, kind: str | None) -> str:
    """Return the refusal of an agent without a runtime, or with one that is not served."""
    has = f'a "{kind}" runtime, which is not supported yet' if kind else "no runtime"
    return (
        f'Agent "{agent}" has {has}. Give it a runtime of type command or scripted or model or'
        " external in agents.list or agents.defaults."
    )


def skipped(name: str, place: str, running: str | None) -> str:
    """Return the warning about a skipped model that precedes the used one."""
    shown = ODD.get(name, name if len(name) <= 100 else name[:99] + "…")
    taken = running or "the runtime's own default"
    return (
        f'Model "{shown}" from {PLACES[place]} is not served by the agent\'s runtime and was'
        f" skipped; running on {taken}."
    )


def cannot_be_named(reason: str) -> str:
    """Return the refusal of a requested folder."""
    return (
        f"The requested workspace cannot be used: {reason}. Give an existing folder, or omit"
        " workspaceDir."
    )


def cannot_be_inherited(reason: str) -> str:
    """Return the refusal of a recorded folder."""
    return (
        f"The recorded workspace of the requester cannot be used: {reason}. Restore the folder,"
        " or spawn from another session."
    )


def cannot_be_made(agent: str, reason: str) -> str:
    """Return the refusal of an agent's own folder."""
    return (
        f'The workspace of agent "{agent}" cannot be created: {reason}. Give the agent another'
        " workspace, or fix this one."
    )


def not_used(agent: str) -> str:
    """Return the warning about a requested folder for a child of another agent."""
    return (
        f'The workspaceDir of the request was not used: the child is of agent "{agent}" and'
        " works in that agent's own folder. Only a child with the requester's agent works in"
        " the requester's folder."
    )

"""Texts and values of spawns, written a second time: inputs, results and messages.

Nothing of `domain` is used: if a text changes there, it must be changed here as well.
"""

ROOTS: dict[str, tuple[str, int]] = {
    "agent:main:main": ("main", 0),
    "agent:ops:telegram:direct:1": ("ops", 0),
    "agent:main:cron:job-1": ("main", 0),
    "agent:main:subagent:a1": ("main", 1),
    "agent:ops:subagent:a1:subagent:b2": ("ops", 2),
}


"""Keys of sessions that were not spawned here, with agent and apparent depth."""


AGENT_IDS = {
    "worker": "worker",
    "Worker": "worker",
    "OPS": "ops",
    "main": "main",
    "ghost": "ghost",
    "team-1": "team-1",
    "9_lives": "9_lives",
    "z" * 64: "z" * 64,
}
NO_AGENT_IDS = {
    "../../../etc/passwd": "../../../etc/passwd",
    "Agent not found: xyz": "Agent not found: xyz",
    "_hidden": "_hidden",
    "-rf": "-rf",
    "wörker": "wörker",
    "z" * 65: "z" * 65,
    "z" * 300: "z" * 199 + "…",
    "a\n[admin] b": "a [admin] b",
    "\u202eniam": "niam",
    "*": "*",
}


"""Texts that are not agent ids, and how they are shown."""


MANY = tuple(f"agent-{number:03}" for number in range(103))
ALLOW_LISTS: dict[tuple[str, ...], tuple[str, ...] | None] = {
    ("*",): None,
    ("worker", " * "): None,
    (): (),
    ("worker",): ("worker",),
    (" Worker ", "OPS", "worker"): ("ops", "worker"),
    ("team-1", "ghost", "9_lives", "main"): ("9_lives", "ghost", "main", "team-1"),
    ("Team 1!", " "): ("team-1",),
    MANY: MANY,
}


"""Possible lists, and the agents that they allow, in order; None for any."""


THINKING = {
    "high": "high",
    "Ultra": "high",
    "think-harder": "medium",
    "off": "off",
    "on": "low",
    "Think": "minimal",
    "auto": "adaptive",
    "X-High": "xhigh",
    "max": "max",
}
NO_THINKING = {
    "deep": "deep",
    "high!": "high!",
    "0": "0",
    "very\nhard": "very hard",
    "w" * 150: "w" * 99 + "…",
}


"""Texts that are not thinking levels, and how they are shown."""


RUN_NOTE = (
    "Auto-announce is push-based. After spawning children, do NOT call sessions_list, "
    "sessions_history, exec sleep, or any polling tool. Track expected child session keys. If any "
    "required child completion has not arrived yet, call sessions_yield to end the turn and wait "
    "for completion events as user messages. Only send your final answer after ALL expected "
    "completions arrive. If a child completion event arrives AFTER your final answer, reply ONLY "
    "with NO_REPLY."
)
SESSION_NOTE = (
    "thread-bound session stays active after this task; continue in-thread for follow-ups."
)
NO_SPAWN_TOOL = (
    "sessions_spawn is not allowed by the tool policy of this session. Do the task yourself, or"
    " ask for a policy that permits it (tools.subagents.tools)."
)
INBOX_NOTE = RUN_NOTE.replace(
    "call sessions_yield to end the turn and wait for completion events as user messages",
    "end the turn and wait for completion events in the inbox of this session",
)
UNANNOUNCED_NOTE = (
    "No completion is announced for this child (expectsCompletionMessage: false), so do not"
    " wait for one. Read its result from its run."
)
NEEDS_THREAD = (
    'sessions_spawn(mode="session") requires thread=true so the subagent can stay bound to a '
    'channel thread. Retry with { mode: "session", thread: true } on a channel that supports '
    'threads, use mode="run" for one-shot work, or use sessions_send(sessionKey=...) to keep '
    "talking to a persistent session without thread binding."
)
NEEDS_ID = (
    "sessions_spawn requires explicit agentId when requireAgentId is configured. "
    "Use agents_list to see allowed agent ids."
)
LEVELS = "off, minimal, low, medium, high, xhigh, max, adaptive"


def invalid_agent_id(shown: str) -> str:
    """Return the refusal of an invalid agent id."""
    return (
        f'Invalid agentId "{shown}". Agent IDs must match [a-z0-9][a-z0-9_-]{{0,63}}.'
        " Use agents_list to discover valid targets."
    )


def too_deep(depth: int, limit: int) -> str:
    """Return the refusal by the depth."""
    return f"sessions_spawn is not allowed at this depth (current depth: {depth}, max: {limit})"


def too_many(children: int, limit: int) -> str:
    """Return the refusal by the cap."""
    return f"sessions_spawn has reached max active children for this session ({children}/{limit})"


def not_allowed(names: tuple[str, ...]) -> str:
    """Return the refusal of an agent that is not allowed."""
    result = ", ".join(names[:100]) or "none"
    more = f", and {len(names) - 100} more" if len(names) > 100 else ""
    return f"agentId is not allowed for sessions_spawn (allowed: {result}{more})"


def not_configured(agent_id: str, asked_for: str) -> str:
    """Return the refusal of an agent that is not configured."""
    whose = f'Agent "{agent_id}" is not configured, and no context script named a configured one.'
    if agent_id != asked_for:
        whose = f'Agent "{agent_id}", named in place of "{asked_for}", is not configured.'
    return f"{whose} Use agents_list to discover valid targets, or add it to agents.list."


def no_level(shown: str) -> str:
    """Return the refusal of an invalid thinking level."""
    return f'Invalid thinking level "{shown}". Use one of: {LEVELS}.'


def is_closed(shown: str) -> str:
    """Return the refusal for a closed session."""
    return f"session {shown} is closed and cannot spawn; spawn from the session that spawned it"


def is_over(shown: str) -> str:
    """Return the refusal for an open session whose run is over."""
    return (
        f"the run of session {shown} is over, so it cannot spawn; spawn from the session that"
        " spawned it, or continue it with a message while it is open"
    )


def is_stopping(shown: str) -> str:
    """Return the refusal for a session that is stopping."""
    return f"session {shown} is being stopped and cannot spawn"

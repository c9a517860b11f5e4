"""Whether a spawn is permitted: one pure function over facts that are recorded with the answer.

The rules are judged in this order and the first that fails speaks: agent id, mode and thread,
depth, active children, requireAgentId, allowAgents. That the agent exists is judged later, by
`agent_known`, once context scripts have had their say.
"""

from collections.abc import Collection

from domain.configuration.agents import allowed_agents
from domain.run.facts import AdmissionFacts
from domain.values.refusals import Permitted, Refusal
from domain.values.text import single_line

RAW_AGENT_ID_CHARACTERS_MAX = 200
AGENTS_SHOWN_MAX = 100


"""Whether a value stands at the agent itself or in what holds for all agents."""


_SESSION_NEEDS_THREAD = (
    'sessions_spawn(mode="session") requires thread=true so the subagent can stay bound to a '
    'channel thread. Retry with { mode: "session", thread: true } on a channel that supports '
    'threads, use mode="run" for one-shot work, or use sessions_send(sessionKey=...) to keep '
    "talking to a persistent session without thread binding."
)
_NEEDS_AGENT_ID = (
    "sessions_spawn requires explicit agentId when requireAgentId is configured. "
    "Use agents_list to see allowed agent ids."
)


def admit(facts: AdmissionFacts, *, raw_agent_id: str = "") -> Permitted | Refusal:
    """Judge the request. `raw_agent_id` is the id as it was given, for the text alone."""
    if facts.agent_id_argument_given and facts.target_agent_id is None:
        return Refusal(rule="agent_id", status="error", text=_invalid_agent_id(raw_agent_id))
    if facts.mode == "session" and not facts.thread:
        return Refusal(rule="mode", status="error", text=_SESSION_NEEDS_THREAD)
    return (
        depth_refusal(facts.caller_depth, facts.max_spawn_depth)
        or active_children_refusal(facts.active_children, facts.max_children, facts.places)
        or _target_refusal(facts)
        or Permitted()
    )


def depth_refusal(caller_depth: int, max_spawn_depth: int) -> Refusal | None:
    """The refusal of a caller that is as deep as sessions may be; None when it may spawn."""
    if caller_depth < max_spawn_depth:
        return None
    return Refusal(
        rule="depth",
        status="forbidden",
        text=(
            "sessions_spawn is not allowed at this depth "
            f"(current depth: {caller_depth}, max: {max_spawn_depth})"
        ),
        current=caller_depth,
        limit=max_spawn_depth,
    )


def active_children_refusal(
    active_children: int, max_children: int, places: int = 1
) -> Refusal | None:
    """The refusal of a requester that has not so many places free; None when it has.

    The only rule for the continuation of a child whose place was released.
    """
    if active_children + places <= max_children:
        return None
    needed = f": {places} tasks need {places} places" if places > 1 else ""
    return Refusal(
        rule="active_children",
        status="forbidden",
        text=(
            "sessions_spawn has reached max active children for this session "
            f"({active_children}/{max_children}){needed}"
        ),
        current=active_children,
        limit=max_children,
    )


def check_agent_known(
    agent_id: str,
    configured: Collection[str],
    *,
    requested_agent_id: str | None = None,
    is_message: bool = False,
) -> Permitted | Refusal:
    """Whether the agent that will run is configured; judged after the context scripts.

    `requested_agent_id` is the id asked for, when a script put another in its place; `is_message`
    is for a session that goes on, for which none is asked.
    """
    if agent_id in configured:
        return Permitted()
    shown = single_line(agent_id, characters_max=RAW_AGENT_ID_CHARACTERS_MAX)
    text = f'Agent "{shown}" is not configured, and no context script named a configured one.'
    if requested_agent_id not in (None, agent_id):
        text = f'Agent "{shown}", named in place of "{requested_agent_id}", is not configured.'
    advice = "Use agents_list to discover valid targets, or add it to agents.list."
    if is_message:
        text = f'Agent "{shown}" is not configured any more.'
        advice = "Add it to agents.list, and send the message again."
    return Refusal(rule="agent_unknown", status="error", text=f"{text} {advice}")


def _target_refusal(facts: AdmissionFacts) -> Refusal | None:
    if facts.require_agent_id and not facts.agent_id_argument_given:
        return Refusal(rule="require_agent_id", status="forbidden", text=_NEEDS_AGENT_ID)
    if not facts.agent_id_argument_given:
        return None
    allowed = allowed_agents(facts.requester_agent_id, facts.allow_agents)
    if allowed is None or facts.target_agent_id in allowed:
        return None
    return Refusal(
        rule="allow_agents",
        status="forbidden",
        text=f"agentId is not allowed for sessions_spawn (allowed: {_list_agents(allowed)})",
    )


def _list_agents(agents: tuple[str, ...]) -> str:
    more = len(agents) - AGENTS_SHOWN_MAX
    shown = ", ".join(agents[:AGENTS_SHOWN_MAX]) or "none"
    return f"{shown}, and {more} more" if more > 0 else shown


def _invalid_agent_id(raw_agent_id: str) -> str:
    shown = single_line(raw_agent_id, characters_max=RAW_AGENT_ID_CHARACTERS_MAX)
    return (
        f'Invalid agentId "{shown}". Agent IDs must match [a-z0-9][a-z0-9_-]{{0,63}}. '
        "Use agents_list to discover valid targets."
    )

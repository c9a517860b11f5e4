"""The rules of admission in words, from the facts that were recorded with the request.

Nothing is judged here: whether a rule refused is told by the record, and only worded.
"""

from collections.abc import Callable, Mapping

from pydantic import JsonValue

from domain.rule_explained import RuleFinding, quote_name
from domain.spawn.admission import ANY_AGENT, AdmissionFacts, allowed_agents

NAMES_SHOWN_MAX = 20


def _agent_id(facts: AdmissionFacts, refused: bool) -> RuleFinding:
    text = f"agentId {quote_name(facts.target_agent_id)} has the form of an agent id"
    if refused:
        text = "what was given as agentId has not the form of an agent id"
    elif not facts.agent_id_argument_given:
        text = (
            "no agentId was given, so it is the requester's own: "
            f"{quote_name(facts.target_agent_id)}"
        )
    return RuleFinding(
        {"given": facts.agent_id_argument_given, "targetAgentId": facts.target_agent_id}, text
    )


def _mode(facts: AdmissionFacts, refused: bool) -> RuleFinding:
    text = f"mode {quote_name(facts.mode)} with thread {_yes_or_no(facts.thread)}"
    if refused:
        text += ", and it needs a thread"
    return RuleFinding({"mode": facts.mode, "thread": facts.thread}, text)


def _depth(facts: AdmissionFacts, refused: bool) -> RuleFinding:
    how = "is not below" if refused else "is below"
    return RuleFinding(
        {
            "callerDepth": facts.caller_depth,
            "depthFrom": facts.depth_from,
            "maxSpawnDepth": facts.max_spawn_depth,
        },
        f"depth {facts.caller_depth} {how} maxSpawnDepth {facts.max_spawn_depth}",
    )


def _active_children(facts: AdmissionFacts, refused: bool) -> RuleFinding:
    told = explain_active_children(facts.active_children, facts.max_children, refused=refused)
    if facts.places == 1:
        return told
    text = f"{facts.active_children} of {facts.max_children} children are active, and"
    are = "are not free" if refused else "are free"
    return RuleFinding(
        {**told.compared, "places": facts.places},
        f"{text} {facts.places} places for as many tasks {are}",
    )


def explain_active_children(active: int, most: int, *, refused: bool) -> RuleFinding:
    """How many places for children a session had left."""
    text = f"{active} of {most} children are active"
    if refused:
        text += ", so no place is free"
    return RuleFinding({"activeChildren": active, "maxChildren": most}, text)


def _require_agent_id(facts: AdmissionFacts, refused: bool) -> RuleFinding:
    given = "was given" if facts.agent_id_argument_given else "was not given"
    text = f"requireAgentId is true, and an agentId {given}"
    if not facts.require_agent_id and not refused:
        text = "requireAgentId is false"
    return RuleFinding(
        {
            "requireAgentId": facts.require_agent_id,
            "from": facts.require_agent_id_from,
            "given": facts.agent_id_argument_given,
        },
        text,
    )


def _allow_agents(facts: AdmissionFacts, refused: bool) -> RuleFinding:
    allowed = allowed_agents(facts.requester_agent_id, facts.allow_agents)
    shown: JsonValue = ANY_AGENT if allowed is None else [*allowed]
    listed: JsonValue = None if facts.allow_agents is None else [*facts.allow_agents]
    target = quote_name(facts.target_agent_id)
    if refused and allowed == ():
        text = f"{target} was named, and no agent is allowed"
    elif refused:
        text = f"{target} is not among {_list_names(allowed or ())}"
    elif not facts.agent_id_argument_given:
        text = "no agentId was given, and the requester's own agent is always allowed"
    elif allowed is None:
        text = f"{target} is allowed, as any agent is"
    else:
        text = f"{target} is among {_list_names(allowed)}"
    return RuleFinding(
        {
            "requesterAgentId": facts.requester_agent_id,
            "targetAgentId": facts.target_agent_id,
            "given": facts.agent_id_argument_given,
            "allowAgents": listed,
            "from": facts.allow_agents_from,
            "allowed": shown,
        },
        text,
    )


ADMISSION_RULES: Mapping[str, Callable[[AdmissionFacts, bool], RuleFinding]] = {
    "agent_id": _agent_id,
    "mode": _mode,
    "depth": _depth,
    "active_children": _active_children,
    "require_agent_id": _require_agent_id,
    "allow_agents": _allow_agents,
}


"""By the name of the rule, in the order in which they are judged; called with whether it
refused."""


def _yes_or_no(value: bool) -> str:
    return "true" if value else "false"


def _list_names(names: tuple[str, ...]) -> str:
    more = len(names) - NAMES_SHOWN_MAX
    shown = ", ".join(names[:NAMES_SHOWN_MAX]) or "none"
    return f"{shown}, and {more} more" if more > 0 else shown

"""Admission of spawns and messages: ordered tables of rules over recorded facts.

Rules are checked in order, and the first that refuses decides. An explanation shows later what each
rule compared, from the same facts; the record says whether it refused. Whether the agent exists is
checked later, with the eligibility rules, because context scripts may still override the agent.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from pydantic import JsonValue

from domain.configuration.agents import ANY_AGENT, allowed_agents
from domain.configuration.configuration import Configuration
from domain.plan.tools import SPAWN_TOOL, permits_tool
from domain.run.events import ContinuationFacts
from domain.run.facts import AdmissionFacts, Plan
from domain.session.role import FoundDepth
from domain.session.shared_context import shared_size_with
from domain.spawn.request import RequestSpawn
from domain.values import rules
from domain.values.refusals import Permitted, Refusal
from domain.values.rules import Rule, RuleFinding
from domain.values.shared_values import SharedKey
from domain.values.sources import ConfiguredAt
from domain.values.text import quote_name, single_line

RAW_AGENT_ID_CHARACTERS_MAX = 200
AGENTS_SHOWN_MAX = 100
NAMES_SHOWN_MAX = 20
F = TypeVar("F")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnPolicy:
    """Limits on a requester's spawns in the pinned configuration revision."""

    max_spawn_depth: int
    max_children: int
    require_agent_id: bool
    allow_agents: tuple[str, ...] | None
    require_agent_id_from: ConfiguredAt | None = None
    allow_agents_from: ConfiguredAt | None = None


def policy_of(configuration: Configuration, requester_agent_id: str) -> SpawnPolicy:
    """Return the limits on the spawns of a requester of this agent."""
    agent = configuration.effective_agent(requester_agent_id)
    own = agent.subagents
    return SpawnPolicy(
        max_spawn_depth=agent.defaults.max_spawn_depth,
        max_children=agent.defaults.max_children_per_agent,
        require_agent_id=own.require_agent_id,
        allow_agents=own.allow_agents,
        require_agent_id_from=own.require_agent_id_from,
        allow_agents_from=own.allow_agents_from,
    )


def admission_facts(
    command: RequestSpawn,
    policy: SpawnPolicy,
    found: FoundDepth,
    active_children: int,
    family: Sequence[SharedKey],
    places: int,
    own_plan: Plan | None = None,
) -> AdmissionFacts:
    """Return the facts that the admission rules compare.

    Args:
        command: The request.
        policy: The configured limits of the requester.
        found: The requester's depth.
        active_children: How many children of the requester count now.
        family: The shared context of the requester's family.
        places: How many children are requested.
        own_plan: The plan of the requester's own run; None if it has none here.
    """
    spawn_tool: Literal["permitted", "denied"] | None = None
    if own_plan is not None:
        spawn_tool = "permitted" if permits_tool(own_plan, SPAWN_TOOL) else "denied"
    shared = shared_size_with(family, command.shared.sizes) if command.shared is not None else None
    return AdmissionFacts(
        requester_agent_id=command.requester_agent_id,
        agent_id_argument_given=command.agent_id_argument is not None,
        target_agent_id=command.target_agent_id,
        mode=command.options.mode,
        thread=command.thread,
        caller_depth=found.depth,
        depth_from=found.source,
        max_spawn_depth=policy.max_spawn_depth,
        active_children=active_children,
        max_children=policy.max_children,
        require_agent_id=policy.require_agent_id,
        allow_agents=policy.allow_agents,
        require_agent_id_from=policy.require_agent_id_from,
        allow_agents_from=policy.allow_agents_from,
        places=places,
        shared_bytes=shared.bytes if shared is not None else None,
        shared_keys=shared.keys if shared is not None else None,
        spawn_tool=spawn_tool,
    )


@dataclass(frozen=True, slots=True)
class AdmissionRule(Generic[F]):
    """Admission rule over the facts of a request or a message.

    Attributes:
        refuses: Returns the text for the caller if the rule refuses, else None. Its second
            argument is the agent id as given, which is in no fact.
        compared: Returns the compared values and a sentence about them, given whether the rule
            refused.
        counts: Returns the compared number and its limit, for a rule that compares numbers.
    """

    rule: Rule
    refuses: Callable[[F, str], str | None]
    compared: Callable[[F, bool], RuleFinding]
    counts: Callable[[F], tuple[int, int]] | None = None

    def refusal(self, facts: F, raw_agent_id: str = "") -> Refusal | None:
        """Return the refusal, or None if the rule permits."""
        text = self.refuses(facts, raw_agent_id)
        if text is None:
            return None
        current, limit = self.counts(facts) if self.counts else (None, None)
        return self.rule.refusal(text, current=current, limit=limit)


def _malformed_agent_id(facts: AdmissionFacts, raw_agent_id: str) -> str | None:
    if not facts.agent_id_argument_given or facts.target_agent_id is not None:
        return None
    shown = single_line(raw_agent_id, characters_max=RAW_AGENT_ID_CHARACTERS_MAX)
    return (
        f'Invalid agentId "{shown}". Agent IDs must match [a-z0-9][a-z0-9_-]{{0,63}}. '
        "Use agents_list to discover valid targets."
    )


def _agent_id(facts: AdmissionFacts, refused: bool) -> RuleFinding:
    text = f"agentId {quote_name(facts.target_agent_id)} is a valid agent id"
    if refused:
        text = "the given agentId is not a valid agent id"
    elif not facts.agent_id_argument_given:
        text = (
            "no agentId was given, so the requester's own is used:"
            f" {quote_name(facts.target_agent_id)}"
        )
    return RuleFinding(
        {"given": facts.agent_id_argument_given, "targetAgentId": facts.target_agent_id}, text
    )


def _session_without_thread(facts: AdmissionFacts, _: str) -> str | None:
    if facts.mode != "session" or facts.thread:
        return None
    return (
        'sessions_spawn(mode="session") requires thread=true so the subagent can stay bound to a '
        'channel thread. Retry with { mode: "session", thread: true } on a channel that supports '
        'threads, use mode="run" for one-shot work, or use sessions_send(sessionKey=...) to keep '
        "talking to a persistent session without thread binding."
    )


def _mode(facts: AdmissionFacts, refused: bool) -> RuleFinding:
    text = f"mode {quote_name(facts.mode)} with thread {'true' if facts.thread else 'false'}"
    if refused:
        text += "; it requires a thread"
    return RuleFinding({"mode": facts.mode, "thread": facts.thread}, text)


def _too_deep(facts: AdmissionFacts, _: str) -> str | None:
    if facts.caller_depth < facts.max_spawn_depth:
        return None
    return (
        "sessions_spawn is not allowed at this depth "
        f"(current depth: {facts.caller_depth}, max: {facts.max_spawn_depth})"
    )


def _depth_finding(facts: AdmissionFacts, refused: bool) -> RuleFinding:
    how = "is not below" if refused else "is below"
    return RuleFinding(
        {
            "callerDepth": facts.caller_depth,
            "depthFrom": facts.depth_from,
            "maxSpawnDepth": facts.max_spawn_depth,
        },
        f"depth {facts.caller_depth} {how} maxSpawnDepth {facts.max_spawn_depth}",
    )


def _denied_tool(facts: AdmissionFacts, _: str) -> str | None:
    if facts.spawn_tool != "denied":
        return None
    return (
        "sessions_spawn is not allowed by the tool policy of this session. Do the task yourself, or"
        " ask for a policy that permits it (tools.subagents.tools)."
    )


def _spawn_tool(facts: AdmissionFacts, refused: bool) -> RuleFinding:
    text = "the requester has no tool policy here"
    if facts.spawn_tool is not None or refused:
        text = f"the requester's tool policy has sessions_spawn {facts.spawn_tool}"
    return RuleFinding({"spawnTool": facts.spawn_tool}, text)


def _too_many_active_children(active: int, most: int, places: int) -> str | None:
    if active + places <= most:
        return None
    needed = f": {places} tasks need {places} places" if places > 1 else ""
    return (
        f"sessions_spawn has reached max active children for this session ({active}/{most}){needed}"
    )


def _active_children_finding(facts: AdmissionFacts, refused: bool) -> RuleFinding:
    finding = _count_children(facts.active_children, facts.max_children, refused=refused)
    if facts.places == 1:
        return finding
    text = f"{facts.active_children} of {facts.max_children} children are active, and"
    are = "are not free" if refused else "are free"
    return RuleFinding(
        {**finding.compared, "places": facts.places},
        f"{text} the {facts.places} places that the tasks need {are}",
    )


def _count_children(active: int, most: int, *, refused: bool) -> RuleFinding:
    text = f"{active} of {most} children are active"
    if refused:
        text += ", so no place is free"
    return RuleFinding({"activeChildren": active, "maxChildren": most}, text)


def _missing_agent_id(facts: AdmissionFacts, _: str) -> str | None:
    if not facts.require_agent_id or facts.agent_id_argument_given:
        return None
    return (
        "sessions_spawn requires explicit agentId when requireAgentId is configured. "
        "Use agents_list to see allowed agent ids."
    )


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


def _forbidden_agent(facts: AdmissionFacts, _: str) -> str | None:
    if not facts.agent_id_argument_given:
        return None
    allowed = allowed_agents(facts.requester_agent_id, facts.allow_agents)
    if allowed is None or facts.target_agent_id in allowed:
        return None
    listed = _list_names(allowed, AGENTS_SHOWN_MAX)
    return f"agentId is not allowed for sessions_spawn (allowed: {listed})"


def _allow_agents(facts: AdmissionFacts, refused: bool) -> RuleFinding:
    allowed = allowed_agents(facts.requester_agent_id, facts.allow_agents)
    shown: JsonValue = ANY_AGENT if allowed is None else [*allowed]
    listed: JsonValue = None if facts.allow_agents is None else [*facts.allow_agents]
    target = quote_name(facts.target_agent_id)
    if refused and allowed == ():
        text = f"{target} was requested, but no agent is allowed"
    elif refused:
        text = f"{target} is not among {_list_names(allowed or (), NAMES_SHOWN_MAX)}"
    elif not facts.agent_id_argument_given:
        text = "no agentId was given, and the requester's own agent is always allowed"
    elif allowed is None:
        text = f"{target} is allowed, because any agent is"
    else:
        text = f"{target} is among {_list_names(allowed, NAMES_SHOWN_MAX)}"
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


def _list_names(names: tuple[str, ...], names_max: int) -> str:
    more = len(names) - names_max
    shown = ", ".join(names[:names_max]) or "none"
    return f"{shown}, and {more} more" if more > 0 else shown


ADMISSION: tuple[AdmissionRule[AdmissionFacts], ...] = (
    AdmissionRule(rules.AGENT_ID, _malformed_agent_id, _agent_id),
    AdmissionRule(rules.MODE, _session_without_thread, _mode),
    AdmissionRule(
        rules.DEPTH,
        _too_deep,
        _depth_finding,
        counts=lambda facts: (facts.caller_depth, facts.max_spawn_depth),
    ),
    AdmissionRule(rules.SPAWN_TOOL, _denied_tool, _spawn_tool),
    AdmissionRule(
        rules.ACTIVE_CHILDREN,
        lambda facts, _: _too_many_active_children(
            facts.active_children, facts.max_children, facts.places
        ),
        _active_children_finding,
        counts=lambda facts: (facts.active_children, facts.max_children),
    ),
    AdmissionRule(rules.REQUIRE_AGENT_ID, _missing_agent_id, _require_agent_id),
    AdmissionRule(rules.ALLOW_AGENTS, _forbidden_agent, _allow_agents),
)
"""Rules for a spawn, in the order of checking."""

CONTINUATION: tuple[AdmissionRule[ContinuationFacts], ...] = (
    AdmissionRule(
        rules.ACTIVE_CHILDREN,
        lambda facts, _: _too_many_active_children(facts.active_children, facts.max_children, 1),
        lambda facts, refused: _count_children(
            facts.active_children, facts.max_children, refused=refused
        ),
        counts=lambda facts: (facts.active_children, facts.max_children),
    ),
)
"""Rules for a message; its run takes the place that the previous run of the session released."""


def admit(
    table: Iterable[AdmissionRule[F]], facts: F, *, raw_agent_id: str = ""
) -> Permitted | Refusal:
    """Return the verdict on a request or a message: the first refusal, or `Permitted`.

    `raw_agent_id` is the agent id as given; it is used only in the refusal text.
    """
    for rule in table:
        refusal = rule.refusal(facts, raw_agent_id)
        if refusal is not None:
            return refusal
    return Permitted()

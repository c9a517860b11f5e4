"""The rules of admission in words, from the facts that were recorded with the request.

Nothing is judged here: whether a rule refused is told by the record, and only worded.
"""

from collections.abc import Callable, Iterator, Mapping

from pydantic import JsonValue

from domain.configuration.agents import ANY_AGENT, allowed_agents
from domain.explanation.record import RuleExplanation, RuleFinding, SpawnRecord
from domain.run.facts import AdmissionFacts, Dependency
from domain.spawn.dependencies import render_dependency
from domain.values.text import quote_name

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


# What a spawn was to wait for, in words, from what was recorded of it.


RULE = "dependencies"
_STEP = "admission"
DEPENDENCY_RULES: Mapping[str, str] = {
    "dependency_unknown": "a name stands for no run of the tree",
    "dependency_ambiguous": "a name is the label of several sessions",
    "dependency_cycle": "a run that it would wait for is above the spawn, or waits for one that is",
    "dependency_failed": "a run that it depends on is over, and not as it is required to be",
    "reference_unknown": "a name stands for no run of the session",
    "reference_ambiguous": "a name stands for several runs of the session",
}


"""By the name of the rule: why it refuses."""


def explain_dependencies(record: SpawnRecord) -> Iterator[RuleExplanation]:
    """What it depends on, when it depends on anything, and the rule that refused this."""
    asked, refused = record.request.dependencies, record.refused
    compared: dict[str, JsonValue] = {
        "dependencies": [
            {**one.model_dump(mode="json", by_alias=True), "metAt": _met_at(record, one)}
            for one in asked
        ],
        "ancestors": [str(one) for one in record.request.ancestors],
    }
    if refused is not None and refused.rule in DEPENDENCY_RULES:
        told = RuleFinding(compared, DEPENDENCY_RULES[refused.rule])
        yield record.judged(refused.step, refused.rule, told, refused, refused=True)
    elif asked and not _was_evaluated(record):
        yield record.not_judged(_STEP, RULE)
    elif asked:
        yield record.judged(
            _STEP, RULE, RuleFinding(compared, _describe_dependencies(record)), record.request
        )


def _was_evaluated(record: SpawnRecord) -> bool:
    is_refused = record.refused is not None and record.refused.step == _STEP
    return record.is_admission_decided and not is_refused


def _describe_dependencies(record: SpawnRecord) -> str:
    runs = ", ".join(_name_dependency(record, one) for one in record.request.dependencies)
    return f"it is queued when these are done, with all below them: {runs}"


def _name_dependency(record: SpawnRecord, one: Dependency) -> str:
    however = ", however it ends" if one.require == "ended" else ""
    met = _met_at(record, one)
    return f"{render_dependency(one)}{however}" + (f", met at {met}" if met is not None else "")


def _met_at(record: SpawnRecord, one: Dependency) -> int | None:
    met = record.met.get(one.run_id)
    return met.position if met is not None else None

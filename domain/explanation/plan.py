"""The rules of a child's plan in words, from the facts that were recorded with the decision.

Nothing is judged here: whether a rule refused is told by the record, and only worded.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from domain.configuration.configuration import Configuration
from domain.configuration.places import BUILT_IN, NAMED_SOURCES
from domain.explanation.record import DecisionRecord, PlanRequest, RuleExplanation
from domain.run.events import ContinuationPlanned, SessionCreated, SpawnRefused
from domain.run.facts import Plan
from domain.run.plan_facts import PlanFacts, SandboxFacts
from domain.values import rules
from domain.values.record import ContentRef
from domain.values.rules import Rule, RuleFinding
from domain.values.text import quote_name

_SKIPPED = ("not_served", "no_name")
NAMES_SHOWN_MAX = 10
ROOTS_SHOWN_MAX = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """What a rule of the plan is explained from. `plan` is None when there came none of it,
    `configuration` when the revision of the decision cannot be read. `folder_made` is whether the
    child's folder was made by a step; None when none has come so far."""

    request: PlanRequest
    agent_id: str | None
    facts: PlanFacts
    plan: Plan | None
    refused: bool
    configuration: Configuration | None = None
    folder_made: bool | None = None


PlanTable = Mapping[Rule, Callable[[PlanRecord], RuleFinding | None]]


def _agent_unknown(planning: PlanRecord) -> RuleFinding | None:
    configured = planning.facts.agent_configured
    if configured is None:
        return None
    requested = planning.request.requested_agent_id
    how = "is configured" if configured else "is not configured"
    instead = (
        f", named in place of {quote_name(requested)}," if requested != planning.agent_id else ""
    )
    return RuleFinding(
        {"agentId": planning.agent_id, "requestedAgentId": requested, "configured": configured},
        f"agent {quote_name(planning.agent_id)}{instead} {how}",
    )


def _sandbox(planning: PlanRecord) -> RuleFinding | None:
    facts = planning.facts.sandbox
    if facts is None:
        return None
    return RuleFinding(facts.model_dump(mode="json"), _sandbox_text(facts, planning.refused))


def _sandbox_text(facts: SandboxFacts, refused: bool) -> str:
    mode = f"sandbox.mode {quote_name(facts.mode)}"
    if facts.child_sandboxed:
        provides = "does not say that it provides one" if refused else "provides one"
        return f"{mode} puts the child into a sandbox, and its runtime {provides}"
    if not refused:
        return f"{mode} puts the child into no sandbox, and none is asked for"
    why = "the requester is in one" if facts.requester_sandboxed else "the request requires one"
    return f"{mode} puts the child into no sandbox, but {why}"


def _model(planning: PlanRecord) -> RuleFinding | None:
    models = planning.facts.models
    if models is None:
        return None
    served = planning.facts.served_models
    taken = next((one for one in models if one.verdict == "taken"), None)
    skipped = sum(one.verdict in _SKIPPED for one in models)
    compared: dict[str, JsonValue] = {
        "candidates": [one.model_dump(mode="json") for one in models],
        "servedModels": None if served is None else [*served],
        "chosen": taken.reference if taken else None,
        "applied": planning.plan.model_applied if planning.plan else None,
    }
    text = "no model is named, so the runtime chooses"
    if taken is not None:
        text = f"{quote_name(taken.reference)}, named by {_source_text(taken.source)}, is taken"
    elif skipped:
        text = "no model that is named can be taken, so the runtime chooses"
    return RuleFinding(compared, f"{text}; {skipped} skipped" if skipped else text)


def _thinking(planning: PlanRecord) -> RuleFinding | None:
    facts = planning.facts.thinking
    if facts is None:
        return None
    level = planning.plan.thinking if planning.plan else None
    compared: dict[str, JsonValue] = {**facts.model_dump(mode="json"), "level": level}
    if planning.refused:
        text = f"the word given by {_source_text(facts.taken_from)} is no thinking level"
    elif facts.taken_from is None:
        text = "no thinking level is named, so the runtime chooses"
    else:
        named = f"level {quote_name(level)}" if level else "the level"
        text = f"{named} of {_source_text(facts.taken_from)} is taken"
    return RuleFinding(compared, text)


def _run_timeout(planning: PlanRecord) -> RuleFinding | None:
    facts = planning.facts.run_timeout
    if facts is None:
        return None
    plan = planning.plan
    asked = "none" if facts.argument is None else _seconds(facts.argument)
    text = f"the request asks for {asked}, and {_seconds(facts.configured)} is configured"
    if plan is not None:
        text = f"{_seconds(plan.run_timeout_seconds)}: {text}"
    return RuleFinding(
        {
            "argument": facts.argument,
            "configured": facts.configured,
            "seconds": plan.run_timeout_seconds if plan else None,
            "source": plan.run_timeout_source if plan else None,
        },
        text,
    )


def _runtime(planning: PlanRecord) -> RuleFinding | None:
    kind = planning.facts.runtime
    if kind is None and not planning.refused:
        return None
    text = (
        "the agent has no runtime" if kind is None else f"the agent's runtime is {quote_name(kind)}"
    )
    if planning.refused and kind is not None:
        text += ", which is not served"
    return RuleFinding({"type": kind}, text)


def _credentials(planning: PlanRecord) -> RuleFinding | None:
    facts = planning.facts.credentials
    if facts is None:
        return None
    given = planning.plan.auth_profiles if planning.plan else ()
    compared: dict[str, JsonValue] = {
        "profileIds": [*facts.profile_ids],
        "given": [*given] if planning.plan else None,
        "missing": [*facts.missing],
    }
    if facts.missing:
        text = f"not to be had: {_names(facts.missing)}"
    elif given:
        text = f"the child is given {_names(given)}"
    elif facts.profile_ids:
        text = f"found: {_names(facts.profile_ids)}"
        text += "; the child is given none of it" if planning.plan else ""
    else:
        text = "there are no profiles for the agent's runtime"
    return RuleFinding(compared, text)


def _names(names: tuple[str, ...]) -> str:
    shown = ", ".join(quote_name(name) for name in names[:NAMES_SHOWN_MAX])
    more = len(names) - NAMES_SHOWN_MAX
    return f"{shown} and {more} more" if more > 0 else shown


def _workspace(planning: PlanRecord) -> RuleFinding | None:
    facts = planning.facts.workspace
    if facts is None:
        return None
    asked = planning.request.workspace_argument is not None
    under = planning.configuration
    roots = under.spawnlog.workspace_roots if under else None
    compared: dict[str, JsonValue] = {
        **facts.model_dump(mode="json"),
        "given": asked,
        # As they stand in the file: what a `${NAME}` in them stood for then is not recorded.
        "workspaceRoots": as_json_list(roots),
        "made": planning.folder_made,
    }
    text = f"the folder of the {facts.source} " + (
        "cannot be used" if planning.refused else "is used"
    )
    text += ", and was made for the child" if planning.folder_made else ""
    # Roots count for a folder that is asked for where none is on record.
    if roots is not None and asked and facts.recorded is None and facts.source == "requester":
        shown = ", ".join(quote_name(root) for root in roots[:ROOTS_SHOWN_MAX]) or "none"
        more = len(roots) - ROOTS_SHOWN_MAX
        text += f"; workspaceRoots: {shown}" + (f", and {more} more" if more > 0 else "")
    return RuleFinding(compared, text)


PLAN: PlanTable = {
    rules.AGENT_UNKNOWN: _agent_unknown,
    rules.SANDBOX: _sandbox,
    rules.MODEL: _model,
    rules.THINKING: _thinking,
    rules.RUN_TIMEOUT: _run_timeout,
    rules.RUNTIME: _runtime,
    rules.CREDENTIALS: _credentials,
    rules.WORKSPACE: _workspace,
}
"""The rules and choices of a plan in the order in which they are judged, and what each compared;
None when the facts say nothing of it."""


def explain_plan(
    record: DecisionRecord,
    table: PlanTable,
    by: SessionCreated | ContinuationPlanned | SpawnRefused | None,
    planning: Callable[[PlanFacts, bool], PlanRecord],
) -> Iterator[RuleExplanation]:
    """Each rule of the table, from the event that records what the plan was decided from; None when
    the decision did not come so far. `planning` is given the facts, and whether the rule refused.
    """
    step, over = "preparation", False
    for rule, compared in table.items():
        if by is None:
            yield record.not_judged(step, rule.name)
            continue
        refused, facts = record.is_refused_by(rule), by.facts
        if facts is None and refused and rule is rules.AGENT_UNKNOWN:
            # The rule says itself what it found.
            facts = PlanFacts(agent_configured=False)
        finding = compared(planning(facts, refused)) if facts is not None else None
        is_behind = over or (finding is None and record.refused is not None)
        if is_behind and not refused and by.facts is not None:
            yield record.not_judged(step, rule.name)
        else:
            yield record.judged(step, rule.name, finding, by, refused=refused)
        over = over or refused


def _source_text(source: str | None) -> str:
    place = NAMED_SOURCES.get(source or "")
    return place.words if place else source or "somebody"


def as_json_list(names: tuple[str, ...] | None) -> JsonValue:
    """Names as a list of JSON; None stays none."""
    return None if names is None else [*names]


def _seconds(value: float) -> str:
    number = int(value) if float(value).is_integer() else value
    return f"{number} s" if value else "no limit"


# What a child may do, in words, from the event that fixed its plan.


def explain_tools(
    created: SessionCreated | ContinuationPlanned, configuration: Configuration | None = None
) -> RuleFinding:
    """Which tools the child has, and the lists that the revision of the decision makes them
    from; None where that cannot be read."""
    plan = created.plan
    had = "every tool" if plan.tools_allow is None else f"{len(plan.tools_allow)} allowed"
    configured, by = None, ""
    if configuration is not None:
        lists = configuration.tools.subagents.tools
        at = "tools.subagents.tools" if lists.model_fields_set else BUILT_IN
        by = f", by {'the built-in lists' if at == BUILT_IN else at}"
        configured = {
            "allow": as_json_list(lists.allow),
            "alsoAllow": as_json_list(lists.also_allow),
            "deny": as_json_list(lists.deny),
            "at": at,
        }
    return RuleFinding(
        {
            "role": created.role,
            "allow": as_json_list(plan.tools_allow),
            "deny": [*plan.tools_deny],
            "configured": configured,
        },
        f"tools of role {quote_name(created.role)}{by}: {had}, {len(plan.tools_deny)} denied",
    )


def explain_capabilities(created: SessionCreated | ContinuationPlanned, depth: int) -> RuleFinding:
    """What a child at that depth may do to others."""
    return RuleFinding(
        {
            "depth": depth,
            "maxDepth": created.max_depth,
            "role": created.role,
            "controlScope": created.control_scope,
        },
        f"depth {depth} of at most {created.max_depth} has role {quote_name(created.role)} and"
        f" control scope {quote_name(created.control_scope)}",
    )


_NO_CONTEXT = "no context was handed over"
_BLANK_CONTEXT = "no context was handed over: nothing stood in it"


def explain_preamble(given: ContentRef | None, created: SessionCreated) -> RuleFinding | None:
    """How much its parent told the child, and how much of it was handed over, without the mark of a
    cut; None where the release that decided this did not record it."""
    sizes = created.preamble
    if sizes is None:
        kept = any(one.position == "preamble" for one in created.ingredients)
        return None if kept else RuleFinding({}, _NO_CONTEXT if given is None else _BLANK_CONTEXT)
    how = "whole" if sizes.kept_characters == sizes.given_characters else "cut"
    if not sizes.kept_characters:
        how = "not at all"
    text = (
        f"{sizes.kept_characters} of {sizes.given_characters} characters of context were handed"
        f" over, {how}; at most {sizes.characters_max}"
    )
    return RuleFinding(sizes.model_dump(mode="json", by_alias=True), text)

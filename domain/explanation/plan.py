"""Explanation of the plan rules, from the facts recorded with the decision.

No rule is judged here: the record says whether a rule refused, and this module words it.
"""

from collections.abc import Callable, Iterator

from pydantic import JsonValue

from domain.configuration.configuration import Configuration
from domain.configuration.places import BUILT_IN
from domain.explanation.record import DecisionRecord, RuleExplanation
from domain.plan.eligibility import EligibilityTable, PlanRecord
from domain.run.events import ContinuationPlanned, SessionCreated, SpawnRefused
from domain.run.plan_facts import PlanFacts
from domain.values import rules
from domain.values.record import ContentRef
from domain.values.rules import RuleFinding
from domain.values.text import quote_name


def explain_plan(
    record: DecisionRecord,
    table: EligibilityTable,
    by: SessionCreated | ContinuationPlanned | SpawnRefused | None,
    planning: Callable[[PlanFacts, bool], PlanRecord],
) -> Iterator[RuleExplanation]:
    """Yield an explanation of each rule of a plan.

    Args:
        record: Record of the spawn or message.
        table: Plan rules, in the order in which they are judged.
        by: Event that records the plan's facts; None if the decision did not get that far.
        planning: Builds the input of an explanation from the facts and whether the rule refused.
    """
    step, over = "preparation", False
    for row in table:
        rule = row.rule
        if by is None:
            yield record.not_judged(step, rule.name)
            continue
        refused, facts = record.is_refused_by(rule), by.facts
        if facts is None and refused and rule is rules.AGENT_UNKNOWN:
            # That this rule refused implies the missing fact.
            facts = PlanFacts(agent_configured=False)
        finding = row.compared(planning(facts, refused)) if facts is not None else None
        is_later = over or (finding is None and record.refused is not None)
        if is_later and not refused and by.facts is not None:
            yield record.not_judged(step, rule.name)
        else:
            yield record.judged(step, rule.name, finding, by, refused=refused)
        over = over or refused


def as_json_list(names: tuple[str, ...] | None) -> JsonValue:
    """Return names as a JSON list, or None unchanged."""
    return None if names is None else [*names]


# Explanation of a child's permissions, from the event that recorded its plan.


def explain_tools(
    created: SessionCreated | ContinuationPlanned, configuration: Configuration | None = None
) -> RuleFinding:
    """Explain which tools the child has, and which configured lists they are derived from.

    Args:
        created: Event that recorded the plan.
        configuration: Configuration at the decision's revision; None if it cannot be read, in which
            case the lists are omitted.
    """
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
    """Explain a child's role at its depth, and its control over other sessions."""
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


_NO_CONTEXT = "no preamble was passed"
_BLANK_CONTEXT = "no preamble was passed: it was empty"


def explain_preamble(given: ContentRef | None, created: SessionCreated) -> RuleFinding | None:
    """Explain how much context the parent gave and how much was passed on, excluding truncation
    marks.

    None if the release that made the decision did not record the sizes.
    """
    sizes = created.preamble
    if sizes is None:
        found = any(ingredient.position == "preamble" for ingredient in created.ingredients)
        return None if found else RuleFinding({}, _NO_CONTEXT if given is None else _BLANK_CONTEXT)
    how = "whole" if sizes.kept_characters == sizes.given_characters else "cut"
    if not sizes.kept_characters:
        how = "not at all"
    text = (
        f"{sizes.kept_characters} of {sizes.given_characters} preamble characters were passed,"
        f" {how}; at most {sizes.characters_max}"
    )
    return RuleFinding(sizes.members(), text)

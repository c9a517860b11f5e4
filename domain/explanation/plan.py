"""The rules of a child's plan in words, from the facts that were recorded with the decision.

Nothing is judged here: whether a rule refused is told by the record, and only worded.
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
    """Each rule of the table, from the event that records what the plan was decided from; None when
    the decision did not come so far. `planning` is given the facts, and whether the rule refused.
    """
    step, over = "preparation", False
    for row in table:
        rule = row.rule
        if by is None:
            yield record.not_judged(step, rule.name)
            continue
        refused, facts = record.is_refused_by(rule), by.facts
        if facts is None and refused and rule is rules.AGENT_UNKNOWN:
            # The rule says itself what it found.
            facts = PlanFacts(agent_configured=False)
        finding = row.compared(planning(facts, refused)) if facts is not None else None
        is_behind = over or (finding is None and record.refused is not None)
        if is_behind and not refused and by.facts is not None:
            yield record.not_judged(step, rule.name)
        else:
            yield record.judged(step, rule.name, finding, by, refused=refused)
        over = over or refused


def as_json_list(names: tuple[str, ...] | None) -> JsonValue:
    """Names as a list of JSON; None stays none."""
    return None if names is None else [*names]


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
        found = any(one.position == "preamble" for one in created.ingredients)
        return None if found else RuleFinding({}, _NO_CONTEXT if given is None else _BLANK_CONTEXT)
    how = "whole" if sizes.kept_characters == sizes.given_characters else "cut"
    if not sizes.kept_characters:
        how = "not at all"
    text = (
        f"{sizes.kept_characters} of {sizes.given_characters} characters of context were handed"
        f" over, {how}; at most {sizes.characters_max}"
    )
    return RuleFinding(sizes.members(), text)

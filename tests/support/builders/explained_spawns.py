"""Spawns and their explanations, for tests."""

from typing import Any

from domain.configuration.configuration import Configuration
from domain.event_types import AnyEvent
from domain.explanation.record import EventAtRevision, RuleExplanation
from domain.explanation.spawn import explain
from domain.explanation.steps import STEP_RULES
from domain.plan.eligibility import CONTINUED_ELIGIBILITY, ELIGIBILITY
from domain.run.plan_facts import (
    CredentialFacts,
    ModelVerdict,
    PlanFacts,
    ThinkingFacts,
    TimeoutFacts,
    WorkspaceFacts,
)
from domain.session.events import ChildAdmitted
from domain.spawn.admission import ADMISSION
from tests.support.builders.facts import fact_of
from tests.support.builders.run_histories import created, refused, resolved
from tests.support.builders.storytelling import facts, plan, requested, run_id

# Names of explained rules, in the order of the decision.
ADMISSION_RULES = [item.rule.name for item in ADMISSION]
PLAN_RULES = [item.rule.name for item in ELIGIBILITY]
CONTINUATION_RULES = [item.rule.name for item in CONTINUED_ELIGIBILITY]
REVISION = 7
ADMITTED = ChildAdmitted(run_id=run_id(1), active_children=1, max_children=5)
SANDBOX: dict[str, Any] = {
    "mode": "off",
    "child_sandboxed": False,
    "runtime_provides": False,
    "requester_sandboxed": False,
    "required": False,
}
INHERITED = ThinkingFacts(defaults_subagents="low", taken_from="defaults_subagents")
MODELS = (
    ModelVerdict(source="argument", reference="small/one", verdict="not_served"),
    ModelVerdict(source="agent_subagents", reference="large/two", verdict="taken"),
    ModelVerdict(source="defaults", reference="third", verdict="not_reached"),
)
BEHIND_ADMISSION = (
    "context_scripts",
    "override",
    *PLAN_RULES,
    *STEP_RULES,
    "tool_policy",
    "capabilities",
    "preamble",
)


def plan_facts(**changes: Any) -> PlanFacts:
    plain = {
        "agent_configured": True,
        "sandbox": SANDBOX,
        "models": MODELS,
        "served_models": ("large/*",),
        "thinking": INHERITED,
        "run_timeout": TimeoutFacts(argument=None, configured=600),
        "runtime": "scripted",
        "credentials": CredentialFacts(profile_ids=("anthropic:default", "openai:default")),
        "workspace": WorkspaceFacts(source="agent", recorded=None, chosen="/srv/main"),
    }
    return fact_of(PlanFacts, plain | changes)


def told(
    *events: AnyEvent, configuration: Configuration | None = None
) -> tuple[RuleExplanation, ...]:
    """Return the explanation of these events, at positions 10, 11, 12 …"""
    recorded = [EventAtRevision(at, REVISION, event) for at, event in enumerate(events, start=10)]
    return explain(recorded, configuration)


def the(
    rule: str, *events: AnyEvent, configuration: Configuration | None = None
) -> RuleExplanation:
    (found,) = [
        answer for answer in told(*events, configuration=configuration) if answer.rule == rule
    ]
    return found


def results(*events: AnyEvent) -> dict[str, str]:
    return {answer.rule: answer.result for answer in told(*events)}


def admission(rule: str, *, refuses: bool = False, **changes: Any) -> RuleExplanation:
    request = requested(facts=facts(**changes))
    if refuses:
        return the(rule, request, refused(rule=rule, status="forbidden", step="admission"))
    return the(rule, request, ADMITTED)


def of_the_plan(rule: str, **changes: Any) -> RuleExplanation:
    event = created(plan=plan(**changes.pop("plan", {})), facts=plan_facts(**changes))
    return the(rule, requested(), ADMITTED, resolved(), event)


def refused_by(rule: str, **changes: Any) -> RuleExplanation:
    """Return the explanation of a plan rule that refused, with its facts."""
    reached = [*PLAN_RULES][[*PLAN_RULES].index(rule) + 1 :]
    names = {"agent_unknown": "agent_configured", "model": "models"}
    not_reached = {names.get(item, item): None for item in reached}
    event = refused(rule=rule, facts=plan_facts(**{**not_reached, **changes}))
    return the(rule, requested(), ADMITTED, resolved(), event)

"""The plan of a child: how it will run, or which rule speaks against it."""

from dataclasses import dataclass

from domain.configuration.configuration import Configuration, EffectiveAgent
from domain.plan.agent import agent_tool_policy
from domain.plan.eligibility import EligibilityTable, judge_eligibility
from domain.plan.request import PlanRequest
from domain.plan.timeout import run_timeout_seconds, run_timeout_source, run_timeout_warnings
from domain.run.facts import Plan
from domain.run.plan_facts import PlanFacts
from domain.run.state import Run
from domain.session.role import Capabilities, capabilities_at
from domain.values.record import Fact, as_float
from domain.values.refusals import Refusal


@dataclass(frozen=True, slots=True)
class RefusedChild:
    """A child that there will not be.

    Attributes:
        refusal: What its caller is told.
        facts: What was looked at until then of what its plan is decided from.
        step: Where it was refused.
    """

    refusal: Refusal
    facts: PlanFacts
    step: str = "preparation"


class PlannedChild(Fact):
    """How the child will run, what its caller should know, and what that was decided from."""

    agent: EffectiveAgent
    plan: Plan
    capabilities: Capabilities
    warnings: tuple[str, ...]
    facts: PlanFacts


def frame_plan(table: EligibilityTable, request: PlanRequest) -> PlannedChild | RefusedChild:
    """Return the plan without its folder, which the last row of a table judges: it is the same for
    all requests of one shape, whatever has become of the folder."""
    facts, refusal = judge_eligibility(table[:-1], request)
    if refusal is not None:
        return RefusedChild(refusal, facts)
    shape, agent, model, thinking = request.shape, request.agent, request.model, request.thinking
    runtime = agent.runtime
    assert runtime is not None
    capabilities = capabilities_at(shape.depth, agent.defaults.max_spawn_depth)
    policy = agent_tool_policy(agent, capabilities.role)
    requested, configured = shape.options.run_timeout_seconds, agent.defaults.run_timeout_seconds
    cost = agent.models.cost_of(model.provider or "", model.model or "")
    plan = Plan(
        model_provider=model.provider,
        model=model.model,
        model_source=model.source,
        model_applied=model.applied,
        thinking=thinking.level,
        thinking_source=thinking.source,
        run_timeout_seconds=run_timeout_seconds(requested, configured),
        run_timeout_source=run_timeout_source(requested),
        workspace_source="agent",
        sandboxed=request.sandbox.child_sandboxed,
        tools_allow=policy.allow,
        tools_deny=policy.deny,
        runtime=runtime.type,
        archive_after_minutes=agent.defaults.archive_after_minutes,
        cost_input_usd_per_million=as_float(cost.input) if cost else None,
        cost_output_usd_per_million=as_float(cost.output) if cost else None,
        auth_profiles=request.credentials.given,
    )
    warnings = (*model.warnings, *run_timeout_warnings(requested, configured))
    return PlannedChild(
        agent=agent, plan=plan, capabilities=capabilities, warnings=warnings, facts=facts
    )


def settle_workspace(
    table: EligibilityTable, frame: PlannedChild, request: PlanRequest
) -> PlannedChild | RefusedChild:
    """Return a plan with the folder of a request, or the refusal of that."""
    looked, refusal = judge_eligibility(table[-1:], request)
    facts = frame.facts.changed({"workspace": looked.workspace})
    if refusal is not None:
        return RefusedChild(refusal, facts)
    chosen = request.workspace.facts
    folder = {"workspace_dir": chosen.chosen, "workspace_source": chosen.source}
    return frame.changed({"plan": frame.plan.changed(folder), "facts": facts})


def plan_with_hours(plan: Plan, run: Run, configuration: Configuration) -> Plan:
    """Return the plan with the hours after which a session that stays open is put away."""
    if run.options.mode != "session":
        return plan
    bindings = configuration.session.thread_bindings
    hours: dict[str, object] = {
        "idle_hours": as_float(bindings.idle_hours or None),
        "max_age_hours": as_float(bindings.max_age_hours or None),
    }
    return plan.changed(hours) if any(hours.values()) else plan

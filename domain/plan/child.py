"""Plan of a child: how it will run, or the refusal that prevents it."""

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
    """A child whose plan was refused.

    Attributes:
        refusal: Refusal to return to the caller.
        facts: Facts that were examined before the refusal.
        step: Step at which it was refused.
    """

    refusal: Refusal
    facts: PlanFacts
    step: str = "preparation"


class PlannedChild(Fact):
    """The plan of a child, with warnings for the caller and the facts it was decided from."""

    agent: EffectiveAgent
    plan: Plan
    capabilities: Capabilities
    warnings: tuple[str, ...]
    facts: PlanFacts


def frame_plan(table: EligibilityTable, request: PlanRequest) -> PlannedChild | RefusedChild:
    """Return the plan without its workspace, or the refusal.

    All rules of the table apply except the last, which judges the workspace. The result is the same
    for all requests of one shape, whatever the state of the workspace.

    Args:
        table: Eligibility table for a spawn or a message.
        request: Request for the plan; `chosen` is not used.
    """
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
    """Add the workspace of a request to a plan, or refuse the child because of it.

    Args:
        table: The table that `frame_plan` used; only its last rule is judged.
        frame: Result of `frame_plan`.
        request: Request for the plan, with `chosen`.
    """
    judged, refusal = judge_eligibility(table[-1:], request)
    facts = frame.facts.changed({"workspace": judged.workspace})
    if refusal is not None:
        return RefusedChild(refusal, facts)
    chosen = request.workspace.facts
    folder = {"workspace_dir": chosen.chosen, "workspace_source": chosen.source}
    return frame.changed({"plan": frame.plan.changed(folder), "facts": facts})


def plan_with_hours(plan: Plan, run: Run, configuration: Configuration) -> Plan:
    """Add the idle and maximum age, in hours, after which a persistent session is archived.

    Unchanged for a run of mode `run`, and if neither limit is configured.
    """
    if run.options.mode != "session":
        return plan
    bindings = configuration.session.thread_bindings
    hours: dict[str, object] = {
        "idle_hours": as_float(bindings.idle_hours or None),
        "max_age_hours": as_float(bindings.max_age_hours or None),
    }
    return plan.changed(hours) if any(hours.values()) else plan

"""The plan of a child, from the record and the pinned configuration."""

from dataclasses import dataclass, replace

from application.child_workspace import choose_workspace, workspace_warnings
from application.fitting import Eligible, Ineligible, evaluate_agent
from application.ports.configurations import Configurations, PinnedConfiguration
from application.ports.credentials import NOTHING_FOUND, FoundCredentials
from domain.configuration.configuration import Configuration
from domain.plan.timeout import run_timeout_seconds, run_timeout_source, run_timeout_warnings
from domain.plan.tools import tool_policy
from domain.run.facts import Plan
from domain.run.plan_facts import PlanFacts, WorkspaceFacts
from domain.run.state import Run
from domain.session.role import Capabilities, capabilities_at


@dataclass(frozen=True, slots=True)
class PlannedChild:
    """How the child will run, what its caller should know, and what that was decided from."""

    plan: Plan
    capabilities: Capabilities
    warnings: tuple[str, ...]
    facts: PlanFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTexts:
    """What was asked for and is kept beside the log: the word for a level of thinking that is
    none, and the folder of the requester."""

    thinking: str | None = None
    workspace: str | None = None


def plan_spawn(
    run: Run,
    pinned: PinnedConfiguration,
    configurations: Configurations,
    asked: PlanTexts,
    credentials: FoundCredentials = NOTHING_FOUND,
) -> PlannedChild | Ineligible:
    """The plan for the agent that will run, whose `credentials` these are, or the rule that
    refuses it. The folder is last: a child that anything else speaks against leaves no trace."""
    fitted = evaluate_agent(run, pinned.configuration, asked.thinking, credentials)
    if isinstance(fitted, Ineligible):
        return fitted
    workspace, refusal = choose_workspace(run, pinned, configurations, asked.workspace)
    if refusal is not None:
        return Ineligible(refusal, fitted.facts.changed({"workspace": workspace}))
    planned = build_child_plan(run, pinned.configuration, fitted, workspace)
    return replace(planned, warnings=(*planned.warnings, *workspace_warnings(run, asked.workspace)))


def plan_continuation(
    run: Run,
    pinned: PinnedConfiguration,
    last: Plan,
    thinking: str | None,
    credentials: FoundCredentials = NOTHING_FOUND,
) -> PlannedChild | Ineligible:
    """The plan of a run that goes on with a session, by the configuration of today: but it works
    where the run before it did, whose plan is `last`."""
    fitted = evaluate_agent(run, pinned.configuration, thinking, credentials)
    if isinstance(fitted, Ineligible):
        return fitted
    workspace = WorkspaceFacts(
        source=last.workspace_source or "agent",
        recorded=last.workspace_dir,
        chosen=last.workspace_dir,
    )
    planned = build_child_plan(run, pinned.configuration, fitted, workspace)
    # Before sources were recorded, links were not resolved either: there is none to make up.
    plan = planned.plan.changed({"workspace_source": last.workspace_source})
    return replace(planned, plan=plan)


def build_child_plan(
    run: Run, configuration: Configuration, fitted: Eligible, workspace: WorkspaceFacts
) -> PlannedChild:
    """The plan of a child that nothing speaks against."""
    defaults = configuration.subagent_defaults
    model, thinking = fitted.model, fitted.thinking
    capabilities = capabilities_at(run.depth, defaults.max_spawn_depth)
    tools = configuration.tools.subagents.tools
    policy = tool_policy(
        capabilities.role, allow=tools.allow, also_allow=tools.also_allow, deny=tools.deny
    )
    asked_seconds, configured_seconds = (
        run.options.run_timeout_seconds,
        defaults.run_timeout_seconds,
    )
    cost = configuration.cost_of(model.provider or "", model.model or "")
    plan = Plan(
        model_provider=model.provider,
        model=model.model,
        model_source=model.source,
        model_applied=model.applied,
        thinking=thinking.level,
        thinking_source=thinking.source,
        run_timeout_seconds=run_timeout_seconds(asked_seconds, configured_seconds),
        run_timeout_source=run_timeout_source(asked_seconds),
        workspace_dir=workspace.chosen,
        workspace_source=workspace.source,
        sandboxed=fitted.sandboxed,
        tools_allow=policy.allow,
        tools_deny=policy.deny,
        runtime=fitted.runtime.type,
        archive_after_minutes=defaults.archive_after_minutes,
        cost_input_usd_per_million=cost.input if cost else None,
        cost_output_usd_per_million=cost.output if cost else None,
        auth_profiles=fitted.auth_profiles,
    )
    facts = fitted.facts.changed({"workspace": workspace})
    warnings = (*model.warnings, *run_timeout_warnings(asked_seconds, configured_seconds))
    return PlannedChild(plan, capabilities, warnings, facts)

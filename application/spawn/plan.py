"""The plan of a child, from the record and the pinned configuration."""

from dataclasses import dataclass, replace

from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import PinnedConfiguration
from application.ports.credentials import NOTHING_FOUND, FoundCredentials
from application.ports.files import WorkspaceForbidden, Workspaces
from application.steps.workspace import unusable_workspace_text
from domain.configuration.configuration import Configuration, EffectiveAgent
from domain.configuration.runtimes import (
    SERVED_RUNTIMES,
    Runtime,
    provides_sandbox,
    served_models_of,
)
from domain.plan.agent import agent_tool_policy, plan_agent_model, plan_agent_thinking
from domain.plan.model import ModelPlan
from domain.plan.sandbox import missing_sandbox_refusal, sandbox_refusal
from domain.plan.thinking import ThinkingPlan
from domain.plan.timeout import run_timeout_seconds, run_timeout_source, run_timeout_warnings
from domain.run.events import SpawnRequested
from domain.run.facts import Plan
from domain.run.plan_facts import (
    CredentialFacts,
    PlanFacts,
    SandboxFacts,
    ThinkingFacts,
    TimeoutFacts,
    WorkspaceFacts,
)
from domain.run.state import Run
from domain.session.role import Capabilities, capabilities_at
from domain.spawn.admission import check_agent_known
from domain.values import rules
from domain.values.refusals import Refusal
from domain.values.thinking_level import normalise_thinking

# The rules for the agent that will run, judged once the context scripts have had their say.
#
# They are judged in this order and the first that fails speaks: that the agent is configured, its
# sandbox, thinking, its runtime, its credentials. The choice of a model stands between and refuses
# nothing. Pure, so nothing is made for a child that is refused here.


MISSING_RECORDED_MAX = 50
MISSING_SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class Ineligible:
    """The rule that refuses the child, and what was looked at until then."""

    refusal: Refusal
    facts: PlanFacts


@dataclass(frozen=True, slots=True)
class Eligible:
    """What the agent will run with, and what that was decided from."""

    agent: EffectiveAgent
    facts: PlanFacts
    model: ModelPlan
    thinking: ThinkingPlan
    runtime: Runtime
    sandboxed: bool
    auth_profiles: tuple[str, ...] = ()


def evaluate_agent(
    run: Run,
    agent: EffectiveAgent,
    configuration: Configuration,
    thinking_argument: str | None = None,
    credentials: FoundCredentials = NOTHING_FOUND,
) -> Eligible | Ineligible:
    """Judge the agent that will run. `thinking_argument` is the text of what was asked for and is
    no level; it is kept beside the log. `credentials` are those of that agent."""
    agent_id = agent.id
    known = check_agent_known(
        agent,
        requested_agent_id=run.requested_agent_id,
        is_message=run.continues is not None,
    )
    if isinstance(known, Refusal):
        return Ineligible(known, PlanFacts(agent_configured=False))
    sandbox = _sandbox(run, agent, configuration)
    refusal = sandbox_refusal(sandbox) or missing_sandbox_refusal(sandbox, agent_id)
    if refusal is not None:
        return Ineligible(refusal, PlanFacts(agent_configured=True, sandbox=sandbox))
    model = plan_agent_model(
        agent,
        argument=run.options.model,
        unnamed_argument=run.model_argument is not None,
        caller=(run.options.active_model or run.requester.model) if run.is_of_same_agent else None,
    )
    thinking, thinking_facts = _thinking(run, agent, thinking_argument)
    facts = PlanFacts(
        agent_configured=True,
        sandbox=sandbox,
        models=model.verdicts,
        served_models=served_models_of(agent.runtime),
        thinking=thinking_facts,
    )
    if thinking.error is not None:
        return Ineligible(rules.THINKING.refusal(thinking.error), facts)
    runtime = agent.runtime
    timeout = TimeoutFacts(
        argument=run.options.run_timeout_seconds, configured=agent.defaults.run_timeout_seconds
    )
    facts = facts.changed({"run_timeout": timeout, "runtime": runtime.type if runtime else None})
    if runtime is None or runtime.type not in SERVED_RUNTIMES:
        return Ineligible(_unserved_runtime(agent_id, runtime), facts)
    facts = facts.changed({"credentials": _credential_facts(credentials)})
    if credentials.missing:
        return Ineligible(_missing_credentials(agent_id, credentials), facts)
    return Eligible(
        agent, facts, model, thinking, runtime, sandbox.child_sandboxed, credentials.given
    )


def _sandbox(run: Run, agent: EffectiveAgent, configuration: Configuration) -> SandboxFacts:
    requester, mode = run.requester, agent.sandbox_mode
    recorded = requester.sandboxed
    if recorded is None:
        recorded = configuration.is_sandboxed(requester.agent_id, requester.session_key)
    return SandboxFacts(
        mode=mode,
        # The session of a child is nobody's main session.
        child_sandboxed=mode != "off",
        runtime_provides=provides_sandbox(agent.runtime),
        requester_sandboxed=recorded or run.options.requester_sandboxed,
        required=run.options.sandbox == "require",
    )


def _thinking(
    run: Run, agent: EffectiveAgent, argument: str | None
) -> tuple[ThinkingPlan, ThinkingFacts]:
    asked = argument or run.options.thinking
    inherited = run.options.active_thinking or run.requester.thinking
    caller = inherited if run.is_of_same_agent else None
    plan = plan_agent_thinking(agent, argument=asked, caller=caller)
    # A word that is no level may be anything, and goes into no event.
    words = (asked, agent.thinking, agent.defaults.thinking, caller)
    levels = [normalise_thinking(word) if word else None for word in words]
    return plan, ThinkingFacts(
        argument=levels[0],
        agent_subagents=levels[1],
        defaults_subagents=levels[2],
        caller=levels[3],
        taken_from=plan.source,
    )


def _unserved_runtime(agent_id: str, runtime: Runtime | None) -> Refusal:
    kind = f'a "{runtime.type}" runtime, which is not served yet' if runtime else "no runtime"
    return rules.RUNTIME.refusal(
        f'Agent "{agent_id}" has {kind}. Give it a runtime of type'
        f" {' or '.join(SERVED_RUNTIMES)} in agents.list or agents.defaults."
    )


def _credential_facts(credentials: FoundCredentials) -> CredentialFacts:
    missing = dict.fromkeys(one.name for one in credentials.missing)
    return CredentialFacts(
        profile_ids=credentials.profile_ids, missing=tuple(missing)[:MISSING_RECORDED_MAX]
    )


def _missing_credentials(agent_id: str, credentials: FoundCredentials) -> Refusal:
    texts = list(dict.fromkeys(one.text for one in credentials.missing))
    told = "; ".join(texts[:MISSING_SHOWN_MAX])
    if len(texts) > MISSING_SHOWN_MAX:
        told += f"; and {len(texts) - MISSING_SHOWN_MAX} more"
    them = "it" if len(texts) == 1 else "them"
    unset = all(one.is_unset for one in credentials.missing)
    advice = f"Set {them} in the environment of" if unset else f"Mend {them} on"
    return rules.CREDENTIALS.refusal(
        f'The credentials of agent "{agent_id}" cannot be had: {told}.'
        f" {advice} every server, or name another agent."
    )


# The folder that a child works in: its requester's for a child of the same agent, else its agent's
# own.


REPLACED_WORKSPACE = (
    "The workspace of the run is not the folder it was when the spawn was accepted: it has gone, or"
    " a link leads from its path to another one. Look who replaced it, put the folder back and"
    " spawn again, or send the message again to a session that is open."
)


def choose_workspace(
    run: Run,
    agent: EffectiveAgent,
    pinned: PinnedConfiguration,
    workspaces: Workspaces,
    requested: str | None,
) -> tuple[WorkspaceFacts, Refusal | None]:
    """What was chosen, and the refusal when that folder cannot be had.

    `requested` is the folder that the request says its requester works in. It tells of the
    requester, so a child of another agent has nothing of it. An inherited folder has to be
    there; the agent's own is made later, by a step of the preparation.
    """
    recorded = run.requester.workspace_dir if run.is_of_same_agent else None
    named = requested if run.is_of_same_agent else None
    is_inherited = recorded is not None or named is not None
    facts = WorkspaceFacts(source="requester" if is_inherited else "agent", recorded=recorded)
    try:
        folder = workspaces.workspace_of(pinned, agent, recorded=recorded, requested=named)
    except WorkspaceForbidden as forbidden:
        return facts, _workspace_refusal(str(forbidden))
    except OSError as error:
        return facts, _workspace_refusal(unusable_workspace_text(error, agent.id, recorded, named))
    return facts.changed({"chosen": folder}), None


def workspace_warnings(run: Run, requested: str | None) -> tuple[str, ...]:
    """What the caller is told when the folder that its request names is not used. The folder is
    not named: a warning goes into an event."""
    if requested is None or run.is_of_same_agent:
        return ()
    return (
        f'The workspaceDir of the request was not used: the child is of agent "{run.agent_id}" and'
        " works in that agent's own folder. Only a child of its requester's agent works where it"
        " does.",
    )


async def read_requested_workspace(work: UnitOfWork, run: Run) -> str | None:
    """The folder that the request named, as it is on record."""
    argument = (await work.event(SpawnRequested, run.run_id)).workspace_argument
    return await work.contents.text(argument) if argument else None


def _workspace_refusal(text: str) -> Refusal:
    return rules.WORKSPACE.refusal(text)


@dataclass(frozen=True, slots=True)
class PlannedChild:
    """How the child will run, what its caller should know, and what that was decided from."""

    agent: EffectiveAgent
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
    agent: EffectiveAgent,
    pinned: PinnedConfiguration,
    workspaces: Workspaces,
    asked: PlanTexts,
    credentials: FoundCredentials = NOTHING_FOUND,
) -> PlannedChild | Ineligible:
    """The plan for the `agent` that will run, whose `credentials` these are, or the rule that
    refuses it. The folder is last: a child that anything else speaks against leaves no trace."""
    fitted = evaluate_agent(run, agent, pinned.configuration, asked.thinking, credentials)
    if isinstance(fitted, Ineligible):
        return fitted
    workspace, refusal = choose_workspace(run, agent, pinned, workspaces, asked.workspace)
    if refusal is not None:
        return Ineligible(refusal, fitted.facts.changed({"workspace": workspace}))
    planned = build_child_plan(run, fitted, workspace)
    return replace(planned, warnings=(*planned.warnings, *workspace_warnings(run, asked.workspace)))


def plan_continuation(
    run: Run,
    agent: EffectiveAgent,
    pinned: PinnedConfiguration,
    last: Plan,
    thinking: str | None,
    credentials: FoundCredentials = NOTHING_FOUND,
) -> PlannedChild | Ineligible:
    """The plan of a run that goes on with a session, by the configuration of today: but it works
    where the run before it did, whose plan is `last`."""
    fitted = evaluate_agent(run, agent, pinned.configuration, thinking, credentials)
    if isinstance(fitted, Ineligible):
        return fitted
    workspace = WorkspaceFacts(
        source=last.workspace_source or "agent",
        recorded=last.workspace_dir,
        chosen=last.workspace_dir,
    )
    planned = build_child_plan(run, fitted, workspace)
    # Before sources were recorded, links were not resolved either: there is none to make up.
    plan = planned.plan.changed({"workspace_source": last.workspace_source})
    return replace(planned, plan=plan)


def build_child_plan(run: Run, fitted: Eligible, workspace: WorkspaceFacts) -> PlannedChild:
    """The plan of a child that nothing speaks against."""
    agent, model, thinking = fitted.agent, fitted.model, fitted.thinking
    defaults = agent.defaults
    capabilities = capabilities_at(run.depth, defaults.max_spawn_depth)
    policy = agent_tool_policy(agent, capabilities.role)
    asked_seconds, configured_seconds = (
        run.options.run_timeout_seconds,
        defaults.run_timeout_seconds,
    )
    cost = agent.cost_of(model.provider, model.model)
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
    return PlannedChild(agent, plan, capabilities, warnings, facts)

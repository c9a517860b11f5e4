"""The rules for the agent that will run, judged once the context scripts have had their say.

They are judged in this order and the first that fails speaks: that the agent is configured, its
sandbox, thinking, its runtime, its credentials. The choice of a model stands between and refuses
nothing. Pure, so nothing is made for a child that is refused here.
"""

from dataclasses import dataclass, replace

from application.ports.credentials import NOTHING_FOUND, FoundCredentials
from domain.configuration.agents import Agent
from domain.configuration.configuration import Configuration
from domain.configuration.models import ModelSettings
from domain.configuration.runtimes import SERVED_RUNTIMES, Runtime
from domain.plan.model import ModelPlan, plan_model
from domain.plan.sandbox import missing_sandbox_refusal, sandbox_refusal
from domain.plan.thinking import ThinkingPlan, plan_thinking
from domain.run.plan_facts import (
    CredentialFacts,
    PlanFacts,
    SandboxFacts,
    ThinkingFacts,
    TimeoutFacts,
)
from domain.run.state import Run
from domain.spawn.admission import check_agent_known
from domain.values.refusals import Refusal
from domain.values.thinking_level import normalise_thinking

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

    facts: PlanFacts
    model: ModelPlan
    thinking: ThinkingPlan
    runtime: Runtime
    sandboxed: bool
    auth_profiles: tuple[str, ...] = ()


def evaluate_agent(
    run: Run,
    configuration: Configuration,
    thinking_argument: str | None = None,
    credentials: FoundCredentials = NOTHING_FOUND,
) -> Eligible | Ineligible:
    """Judge the agent that will run. `thinking_argument` is the text of what was asked for and is
    no level; it is kept beside the log. `credentials` are those of that agent."""
    agent_id = _agent_of(run)
    known = check_agent_known(
        agent_id,
        configuration.agent_ids(),
        requested_agent_id=run.requested_agent_id,
        is_message=run.continues is not None,
    )
    if isinstance(known, Refusal):
        return Ineligible(known, PlanFacts(agent_configured=False))
    sandbox = _sandbox(run, configuration)
    refusal = sandbox_refusal(sandbox) or missing_sandbox_refusal(sandbox, agent_id)
    if refusal is not None:
        return Ineligible(refusal, PlanFacts(agent_configured=True, sandbox=sandbox))
    agent = configuration.agent(agent_id)
    served = configuration.served_models_of(agent_id)
    model = plan_model(
        _model_settings(run, configuration),
        served=served,
        aliases=configuration.model_aliases(),
        known=configuration.known_models(),
    )
    thinking, thinking_facts = _thinking(run, configuration, agent, thinking_argument)
    facts = PlanFacts(
        agent_configured=True,
        sandbox=sandbox,
        models=model.verdicts,
        served_models=served,
        thinking=thinking_facts,
    )
    if thinking.error is not None:
        return Ineligible(Refusal(rule="thinking", status="error", text=thinking.error), facts)
    runtime = configuration.runtime_for(agent_id)
    timeout = TimeoutFacts(
        argument=run.options.run_timeout_seconds,
        configured=configuration.subagent_defaults.run_timeout_seconds,
    )
    facts = facts.changed({"run_timeout": timeout, "runtime": runtime.type if runtime else None})
    if runtime is None or runtime.type not in SERVED_RUNTIMES:
        return Ineligible(_unserved_runtime(agent_id, runtime), facts)
    facts = facts.changed({"credentials": _credential_facts(credentials)})
    if credentials.missing:
        return Ineligible(_missing_credentials(agent_id, credentials), facts)
    return Eligible(facts, model, thinking, runtime, sandbox.child_sandboxed, credentials.given)


def _agent_of(run: Run) -> str:
    assert run.agent_id is not None
    return run.agent_id


def _sandbox(run: Run, configuration: Configuration) -> SandboxFacts:
    agent_id = _agent_of(run)
    requester = run.requester
    mode = configuration.sandbox_mode_for(agent_id)
    recorded = requester.sandboxed
    if recorded is None:
        recorded = configuration.is_sandboxed(requester.agent_id, requester.session_key)
    return SandboxFacts(
        mode=mode,
        # The session of a child is nobody's main session.
        child_sandboxed=mode != "off",
        runtime_provides=configuration.provides_sandbox(agent_id),
        requester_sandboxed=recorded or run.options.requester_sandboxed,
        required=run.options.sandbox == "require",
    )


def _model_settings(run: Run, configuration: Configuration) -> ModelSettings:
    inherited = run.options.active_model or run.requester.model
    return replace(
        configuration.model_settings_of(_agent_of(run)),
        argument=run.options.model,
        unnamed_argument=run.model_argument is not None,
        caller=inherited if run.is_of_same_agent else None,
    )


def _thinking(
    run: Run, configuration: Configuration, agent: Agent | None, argument: str | None
) -> tuple[ThinkingPlan, ThinkingFacts]:
    asked = argument or run.options.thinking
    own = agent.subagents.thinking if agent else None
    default = configuration.subagent_defaults.thinking
    inherited = run.options.active_thinking or run.requester.thinking
    caller = inherited if run.is_of_same_agent else None
    plan = plan_thinking(
        argument=asked, agent_subagents=own, defaults_subagents=default, caller_active=caller
    )
    # A word that is no level may be anything, and goes into no event.
    levels = [normalise_thinking(word) if word else None for word in (asked, own, default, caller)]
    return plan, ThinkingFacts(
        argument=levels[0],
        agent_subagents=levels[1],
        defaults_subagents=levels[2],
        caller=levels[3],
        taken_from=plan.source,
    )


def _unserved_runtime(agent_id: str, runtime: Runtime | None) -> Refusal:
    kind = f'a "{runtime.type}" runtime, which is not served yet' if runtime else "no runtime"
    return Refusal(
        rule="runtime",
        status="error",
        text=(
            f'Agent "{agent_id}" has {kind}. Give it a runtime of type'
            f" {' or '.join(SERVED_RUNTIMES)} in agents.list or agents.defaults."
        ),
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
    return Refusal(
        rule="credentials",
        status="error",
        text=(
            f'The credentials of agent "{agent_id}" cannot be had: {told}.'
            f" {advice} every server, or name another agent."
        ),
    )

"""The plan of a child: pure, from the record and the pinned configuration."""

from dataclasses import dataclass

from domain.admission import Refusal, agent_known
from domain.capabilities import Capabilities, capabilities_at
from domain.configuration.configuration import Configuration
from domain.model_plan import ModelPlan, ModelSettings, plan_model
from domain.run.facts import Plan
from domain.run.state import Run
from domain.run_timeout import run_timeout_seconds
from domain.thinking import plan_thinking
from domain.tool_policy import tool_policy

SERVED_RUNTIMES = ("command", "scripted")
MAX_TOKENS_PER_PRICE = 1_000_000


@dataclass(frozen=True, slots=True)
class Planned:
    """How the child will run, and what its caller should know."""

    plan: Plan
    capabilities: Capabilities
    warnings: tuple[str, ...]


UNNAMED_MODEL = "The model that was asked for has no model's name and was skipped."


def plan_child(
    run: Run, configuration: Configuration, workspace_dir: str, thinking_argument: str | None
) -> Planned | Refusal:
    """The plan for the agent that will run, or the rule that refuses it. `thinking_argument` is
    the text of what was asked for and is no level."""
    agent_id = run.agent_id
    assert agent_id is not None
    refusal = _unfit_agent(run, configuration)
    if refusal is not None:
        return refusal
    agent = configuration.agent(agent_id)
    defaults = configuration.subagent_defaults
    thinking = plan_thinking(
        argument=thinking_argument or run.options.thinking,
        agent_subagents=agent.subagents.thinking if agent else None,
        defaults_subagents=defaults.thinking,
        caller_active=_of_same_agent(run, run.options.active_thinking),
    )
    if thinking.error is not None:
        return Refusal(rule="thinking", status="error", text=thinking.error)
    model = _model(run, configuration)
    unnamed = run.model_argument is not None
    capabilities = capabilities_at(run.depth, defaults.max_spawn_depth)
    tools = configuration.tools.subagents.tools
    policy = tool_policy(
        capabilities.role, allow=tools.allow, also_allow=tools.also_allow, deny=tools.deny
    )
    runtime = configuration.runtime_for(agent_id)
    assert runtime is not None
    cost = configuration.cost_of(model.provider or "", model.model or "")
    plan = Plan(
        model_provider=model.provider,
        model=model.model,
        model_source=model.source,
        model_applied=model.applied and not unnamed,
        thinking=thinking.level,
        run_timeout_seconds=run_timeout_seconds(
            run.options.run_timeout_seconds, defaults.run_timeout_seconds
        ),
        workspace_dir=workspace_dir,
        tools_allow=policy.allow,
        tools_deny=policy.deny,
        runtime=runtime.type,
        archive_after_minutes=defaults.archive_after_minutes,
        cost_input_usd_per_million=cost.input if cost else None,
        cost_output_usd_per_million=cost.output if cost else None,
    )
    warnings = (UNNAMED_MODEL, *model.warnings) if unnamed else model.warnings
    return Planned(plan, capabilities, warnings)


def _unfit_agent(run: Run, configuration: Configuration) -> Refusal | None:
    assert run.agent_id is not None
    known = agent_known(
        run.agent_id, configuration.agent_ids(), requested_agent_id=run.requested_agent_id
    )
    if isinstance(known, Refusal):
        return known
    runtime = configuration.runtime_for(run.agent_id)
    if runtime is None or runtime.type not in SERVED_RUNTIMES:
        kind = f'a "{runtime.type}" runtime, which is not served yet' if runtime else "no runtime"
        return Refusal(
            rule="runtime",
            status="error",
            text=(
                f'Agent "{run.agent_id}" has {kind}. Give it a runtime of type'
                f" {' or '.join(SERVED_RUNTIMES)} in agents.list or agents.defaults."
            ),
        )
    if configuration.sandbox_mode_for(run.agent_id) != "off":
        return Refusal(
            rule="sandbox",
            status="error",
            text=(
                f'Agent "{run.agent_id}" is to run in a sandbox, and sandboxes are not served yet.'
                ' Set its sandbox.mode to "off", or choose another agent.'
            ),
        )
    return None


def _model(run: Run, configuration: Configuration) -> ModelPlan:
    assert run.agent_id is not None
    agent = configuration.agent(run.agent_id)
    return plan_model(
        ModelSettings(
            argument=run.options.model,
            agent_subagents=configuration.subagent_model_of(run.agent_id),
            defaults_subagents=_primary(configuration.subagent_defaults.model),
            caller=_of_same_agent(run, run.options.active_model),
            agent=_primary(agent.model if agent else None),
            defaults=_primary(configuration.defaults.model),
        ),
        aliases=configuration.model_aliases(),
    )


def _primary(choice: object) -> str | None:
    name = getattr(choice, "name", None)
    return name if isinstance(name, str) else None


def _of_same_agent(run: Run, value: str | None) -> str | None:
    return value if run.agent_id == run.requester.agent_id else None

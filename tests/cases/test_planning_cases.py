"""With which model, level of thinking, tools and time a child runs."""

from collections.abc import Mapping
from typing import Any

import pytest

from domain.configuration.models import split_model_reference
from domain.plan.child import PlannedChild, RefusedChild
from domain.plan.timeout import run_timeout_seconds
from domain.plan.tools import tool_policy
from domain.session.role import capabilities_at
from domain.values.thinking_level import normalise_thinking
from tests.support.cases.cases import Answer, Case, Given, Runner, cases_of
from tests.support.cases.comparison import Among, hold
from tests.support.cases.spawns import CaseSpawn, configuration


def with_a_model(given: Given) -> Answer:
    """The parts of a model's name; of a spawn, the model of its plan. It is the user's choice
    (`user`) when it was the argument, else `auto`."""
    if "ref" in given:
        provider, model = split_model_reference(given["ref"])
        return {"provider": provider, "model": model}
    planned = CaseSpawn(given).planned()
    assert isinstance(planned, PlannedChild)
    plan = planned.plan
    entry = {
        "modelProvider": plan.model_provider,
        "model": plan.model,
        "modelOverrideSource": "user" if plan.model_source == "argument" else "auto",
    }
    return {"childEntry": entry, "modelApplied": plan.model_applied}


def with_thinking(given: Given) -> Answer:
    """The level that a word stands for; of a spawn, the one of its plan, or why it is refused. A
    call to a gateway is an admitted child that nothing was found unfit about."""
    if "raw" in given:
        return {"level": normalise_thinking(given["raw"])}
    spawn = CaseSpawn(given)
    planned = spawn.planned()
    if isinstance(planned, RefusedChild):
        refusal = planned.refusal
        return {"status": refusal.status, "error": refusal.text, "gateway_calls": 0}
    level = planned.plan.thinking
    return {
        "status": "accepted",
        "agent_call": {"thinking": level},
        "childEntry": {"thinkingLevel": level},
        "gateway_calls": spawn.admitted,
    }


TOOLS = (
    "agents_list",
    "cron",
    "exec",
    "gateway",
    "read",
    "session_status",
    "sessions_history",
    "sessions_list",
    "sessions_send",
    "sessions_spawn",
    "subagents",
)


def with_tools(given: Given) -> Answer:
    """Which of the tools may be used by a child as deep as the case says, else at depth 1 of 1;
    the lists stand in the configuration, as far as it takes them together."""
    role = capabilities_at(given.get("depth", 1), given.get("maxSpawnDepth", 1)).role
    lists: dict[str, Any] = {
        name: given[name] for name in ("allow", "alsoAllow", "deny") if name in given
    }
    if not {"allow", "alsoAllow"} <= lists.keys():
        config = {"tools.subagents.tools": lists}
        tools = configuration({"config": config}).tools.subagents.tools
        policy = tool_policy(role, allow=tools.allow, also_allow=tools.also_allow, deny=tools.deny)
    else:
        policy = tool_policy(
            role, allow=lists["allow"], also_allow=lists["alsoAllow"], deny=lists.get("deny")
        )
    if "tool" in given:
        return {"allowed": policy.permits(given["tool"])}
    allowed = Among(tool for tool in TOOLS if policy.permits(tool))
    return {"allowed": allowed, "denied": Among(TOOLS) - allowed}


def with_a_limit(given: Given) -> Answer:
    """The seconds that hold for an argument and a configured limit, also for one that no
    configuration may have."""
    return {"runTimeoutSeconds": run_timeout_seconds(given["arg"], given["config"])}


RUNNERS: Mapping[str, Runner] = {
    "admission.timeout": with_a_limit,
    "model": with_a_model,
    "thinking": with_thinking,
    "toolPolicy": with_tools,
}


@pytest.mark.parametrize("case", cases_of(RUNNERS))
def test_a_child_is_planned_as_the_case_says(case: Case) -> None:
    hold(RUNNERS[case.area](case.given), case)

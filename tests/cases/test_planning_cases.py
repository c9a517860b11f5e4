"""Cases of plans: model, thinking level, tools and timeout."""

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
    """Return the parts of a model's name, or the model of a spawn's plan.

    Its source is `user` if it was the argument, else `auto`.
    """
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
    """Return the level for a word, or that of a spawn's plan, or its refusal. A call to a gateway
    is an admitted child that is fit.
    """
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
    """Return the permitted tools of a child at the given depth, by default 1 of 1; the lists are in
    the configuration, if it permits both.
    """
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
    """Return the effective seconds for an argument and a configured limit, even an invalid one."""
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

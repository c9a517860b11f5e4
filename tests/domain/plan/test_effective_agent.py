"""Effective settings of an agent, and how a plan is shown."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from domain.configuration.configuration import Configuration
from domain.configuration.runtimes import SERVED_RUNTIMES
from domain.plan.child import PlannedChild, RefusedChild
from domain.plan.effective import EffectiveValue, effective_agent_values, effective_values
from domain.run.plan_facts import ModelVerdict
from domain.values.thinking_level import normalise_thinking
from tests.support.builders.configurations import PlacedConfigurations
from tests.support.builders.configured_spawns import Rules
from tests.support.builders.planned_children import asked
from tests.support.builders.spawn_plans import plan_spawn
from tests.support.models.plan_words import WORKSPACES
from tests.support.models.random_plans import PLANNING

COMMAND = {"type": "command", "command": ["true"]}
SCRIPT = {"id": "one", "uri": "one.sh"}


def configuration(**sections: object) -> Configuration:
    return Configuration.model_validate(sections)


def agents(*listed: dict[str, Any], **defaults: object) -> Configuration:
    return configuration(agents={"list": list(listed), "defaults": defaults})


def values_of(configured: Configuration, agent_id: str) -> dict[str, EffectiveValue]:
    values = effective_agent_values(configured, agent_id)
    assert values is not None
    assert len({value.key for value in values}) == len(values)
    return {value.key: value for value in values}


def told(configured: Configuration, agent_id: str, key: str) -> tuple[object, str]:
    value = values_of(configured, agent_id)[key]
    return value.value, value.source


def test_where_nobody_says_anything_everything_is_built_in() -> None:
    values = values_of(configuration(), "main")

    assert {value.source for value in values.values()} == {"built-in"}
    assert values["maxSpawnDepth"].value == 1
    assert values["maxChildrenPerAgent"].value == 5
    assert values["workspace"].value == "workspaces/main in the data directory"
    assert values["model"].value == "the runtime's own choice"
    assert values["mayName"].value == ["main"]


def test_agents_own_word_goes_before_the_defaults() -> None:
    both = agents(
        {"id": "a"},
        {"id": "b", "subagents": {"thinking": "ultra", "allowAgents": ["A", "b", "a"]}},
        subagents={"thinking": "low", "allowAgents": ["*"], "requireAgentId": True},
    )

    assert told(both, "b", "thinking") == ("high", "agents.list[1].subagents.thinking")
    assert told(both, "a", "thinking") == ("low", "agents.defaults.subagents.thinking")
    assert told(both, "b", "allowAgents")[0] == ["A", "b", "a"]
    assert told(both, "b", "mayName") == (["a", "b"], "agents.list[1].subagents.allowAgents")
    assert told(both, "a", "mayName") == (["*"], "agents.defaults.subagents.allowAgents")
    assert told(both, "b", "requireAgentId") == (True, "agents.defaults.subagents.requireAgentId")


def test_first_agent_is_the_default_unless_another_is_marked() -> None:
    first = agents({"id": "a"}, {"id": "b"})
    marked = agents({"id": "a"}, {"id": "b", "default": True})

    assert told(first, "a", "default") == (True, "built-in")
    assert told(marked, "a", "default") == (False, "built-in")
    assert told(marked, "b", "default") == (True, "agents.list[1].default")


def test_every_named_model_is_listed_with_its_verdict() -> None:
    choosing = agents(
        {
            "id": "a",
            "runtime": {**COMMAND, "models": ["x/*"]},
            "model": {"primary": "y/one", "fallbacks": ["X/two", "x/two"]},
        },
        model="x/three",
        subagents={"model": "y/four"},
    )

    own, defaults = "agents.list[0].model", "agents.defaults.model"
    above = "agents.defaults.subagents.model"
    assert told(choosing, "a", "model") == ("x/two", own)
    assert told(choosing, "a", "models") == (
        [
            {"place": above, "model": "y/four", "verdict": "not_served"},
            {"place": own, "model": "y/one", "verdict": "not_served"},
            {"place": own, "model": "X/two", "verdict": "not_served"},
            {"place": own, "model": "x/two", "verdict": "taken"},
            {"place": defaults, "model": "x/three", "verdict": "not_reached"},
        ],
        f"{above}, {own}, {defaults}",
    )
    assert told(choosing, "a", "runtime.models") == (["x/*"], "agents.list[0].runtime.models")


def test_alias_has_the_prices_of_its_model() -> None:
    priced = configuration(
        agents={"defaults": {"model": "Fast", "models": {"p/m": {"alias": "fast"}}}},
        models={"providers": {"p": {"models": [{"id": "m", "cost": {"input": 1, "output": 2}}]}}},
    )

    assert told(priced, "main", "model") == ("p/m", "agents.defaults.model")
    assert told(priced, "main", "prices") == (
        {"input": 1, "output": 2},
        "models.providers.p.models",
    )


def test_workspace_of_the_defaults_is_the_default_agents_alone() -> None:
    shared = agents({"id": "a"}, {"id": "b"}, {"id": "c", "workspace": "c"}, workspace="here")

    assert told(shared, "a", "workspace") == ("here", "agents.defaults.workspace")
    assert told(shared, "b", "workspace") == ("workspaces/b in the data directory", "built-in")
    assert told(shared, "c", "workspace") == ("c", "agents.list[2].workspace")


def test_default_runtime_and_sandbox_hold_for_all() -> None:
    kept_apart = agents(
        {"id": "a"},
        {"id": "b", "sandbox": {"mode": "off"}, "runtime": {"type": "scripted"}},
        runtime={**COMMAND, "providesSandbox": True},
        sandbox={"mode": "all"},
    )

    assert told(kept_apart, "a", "runtime.type") == ("command", "agents.defaults.runtime")
    provides = "runtime.providesSandbox"
    assert told(kept_apart, "a", provides) == (True, "agents.defaults.runtime.providesSandbox")
    assert told(kept_apart, "a", "sandbox.mode") == ("all", "agents.defaults.sandbox.mode")
    assert told(kept_apart, "b", provides) == (False, "built-in")
    assert told(kept_apart, "b", "sandbox.mode") == ("off", "agents.list[1].sandbox.mode")


def test_scripts_are_shown_in_order_with_their_places() -> None:
    second = {"id": "two", "uri": "two.sh", "priority": 5}
    scripted = agents(
        {"id": "a", "subagents": {"contextScripts": {"run": [second]}}},
        {"id": "b", "subagents": {"contextScripts": {"ignore": ["one"]}}},
        subagents={"contextScripts": {"run": [SCRIPT]}},
    )

    everywhere = "agents.defaults.subagents.contextScripts"
    assert told(scripted, "a", "contextScripts") == (
        ["two", "one"],
        f"{everywhere}, agents.list[0].subagents.contextScripts",
    )
    assert told(scripted, "b", "contextScripts")[0] == []


def test_tools_are_shown_for_both_roles() -> None:
    denying = configuration(tools={"subagents": {"tools": {"deny": ["exec"]}}})

    leaf, source = told(denying, "main", "tools.leaf")
    orchestrator, _ = told(denying, "main", "tools.orchestrator")
    assert isinstance(leaf, dict)
    assert isinstance(orchestrator, dict)
    assert source == "tools.subagents.tools"
    assert "sessions_spawn" in leaf["deny"]
    assert "sessions_spawn" not in orchestrator["deny"]
    assert "exec" in orchestrator["deny"]
    assert told(configuration(), "main", "tools.leaf")[1] == "built-in"


def test_bootstrap_limits_are_of_agent_or_defaults() -> None:
    limited = agents({"id": "a"}, {"id": "b", "bootstrapMaxChars": 5}, bootstrapTotalMaxChars=7)

    per_file, total = "bootstrapMaxChars", "bootstrapTotalMaxChars"
    assert told(limited, "a", per_file) == (20_000, "built-in")
    assert told(limited, "b", per_file) == (5, "agents.list[1].bootstrapMaxChars")
    assert told(limited, "b", total) == (7, "agents.defaults.bootstrapTotalMaxChars")
    assert told(configuration(), "main", total) == (150_000, "built-in")


def effective(stored: dict[str, Any]) -> dict[str, Any]:
    return effective_values(Configuration.model_validate(stored), stored)


def test_every_default_is_written_out() -> None:
    values = effective({})

    assert values["agents"]["defaults"]["subagents"]["maxChildrenPerAgent"] == 5
    assert values["agents"]["defaults"]["sandbox"]["mode"] == "off"
    assert values["agents"]["defaults"]["bootstrapMaxChars"] == 20_000
    assert values["agents"]["defaults"]["bootstrapTotalMaxChars"] == 150_000
    assert values["agents"]["list"][0]["bootstrapMaxChars"] is None
    assert [agent["id"] for agent in values["agents"]["list"]] == ["main"]
    assert values["spawnlog"]["port"] == 8700
    assert values["spawnlog"]["workspaceRoots"] == []
    assert values["spawnlog"]["hooks"]["subagentEnded"] is None
    assert values["spawnlog"]["hooks"]["attemptsMax"] == 8
    bindings = values["session"].pop("threadBindings")
    assert values["session"] == {"mainKey": "main", "scope": "per-sender"}
    assert bindings == {
        "enabled": True,
        "spawnSessions": True,
        "defaultSpawnContext": "fork",
        "idleHours": None,
        "maxAgeHours": None,
    }


def test_script_without_a_timeout_has_that_of_the_server() -> None:
    scripts = {"run": [{"id": "a", "uri": "a"}, {"id": "b", "uri": "b", "timeoutSeconds": 10}]}
    values = effective(
        {
            "agents": {
                "defaults": {"subagents": {"contextScripts": scripts}},
                "list": [{"id": "x", "subagents": {"contextScripts": scripts}}],
            },
            "spawnlog": {"scriptTimeoutSeconds": 3},
        }
    )

    (agent,) = values["agents"]["list"]
    for section in (values["agents"]["defaults"], agent):
        run = section["subagents"]["contextScripts"]["run"]
        assert [script["timeoutSeconds"] for script in run] == [3, 10]


def test_secrets_stay_the_references_they_are() -> None:
    token = {"id": "t", "scopes": ["read"], "sessions": ["*"]}
    sources = ["${NAME}", {"file": "token"}, {"$secret": "/spawnlog/tokens/2/token"}]
    reference = {"$secret": "/agents/defaults/runtime/env/KEY"}
    runtime = {"type": "command", "command": ["x"], "env": {"KEY": reference}}
    values = effective(
        {
            "agents": {"defaults": {"runtime": runtime}},
            "spawnlog": {
                "databaseUrl": {"$secret": "/spawnlog/databaseUrl"},
                "tokens": [
                    {**token, "id": f"t{index}", "token": source}
                    for index, source in enumerate(sources)
                ],
            },
        }
    )

    assert values["spawnlog"]["databaseUrl"] == {"$secret": "/spawnlog/databaseUrl"}
    assert [token["token"] for token in values["spawnlog"]["tokens"]] == sources
    assert values["agents"]["defaults"]["runtime"]["env"] == {"KEY": reference}


# `config show --agent` shows the values of a spawn that sets nothing itself.

FOLDER = Path("/nowhere")
DATA_DIRECTORY = (FOLDER / WORKSPACES).parent
IN_DATA_DIRECTORY = " in the data directory"
OWN_CHOICE = "the runtime's own choice"


@given(rules=PLANNING, pick=st.integers(0, 3))
def test_effective_values_are_those_of_a_child(rules: Rules, pick: int) -> None:
    configurations = PlacedConfigurations(FOLDER)
    configurations.read(rules.configuration())
    pinned = configurations.current()
    ids = pinned.configuration.agent_ids()
    agent_id = ids[pick % len(ids)]
    values = effective_agent_values(pinned.configuration, agent_id)
    assert values is not None
    shown = {value.key: value.value for value in values}
    run = asked(agent_id, {"agent_id": "somebody", "sandboxed": False})
    planned = plan_spawn(run, pinned, configurations.workspaces)
    _require_as_shown(planned, shown)


def _require_as_shown(planned: PlannedChild | RefusedChild, shown: dict[str, Any]) -> None:
    is_boxed = shown["sandbox.mode"] != "off"
    if isinstance(planned, RefusedChild):
        speaks = {
            "sandbox": is_boxed and not shown.get("runtime.providesSandbox"),
            "thinking": shown["thinking"] and normalise_thinking(shown["thinking"]) is None,
            "runtime": shown["runtime.type"] not in SERVED_RUNTIMES,
        }
        assert speaks[planned.refusal.rule]
        return
    plan, tools = planned.plan, shown[f"tools.{planned.capabilities.role}"]
    model = f"{plan.model_provider}/{plan.model}" if plan.model_provider else plan.model
    assert (model or OWN_CHOICE) == shown["model"]
    models = [(model["model"], model["verdict"]) for model in shown["models"]]
    assert [_reference(model) for model in planned.facts.models or ()] == models
    assert plan.thinking == shown["thinking"]
    assert plan.runtime == shown["runtime.type"]
    assert plan.sandboxed == is_boxed
    assert plan.run_timeout_seconds == shown["runTimeoutSeconds"]
    assert plan.archive_after_minutes == shown["archiveAfterMinutes"]
    prices = shown["prices"] or {"input": None, "output": None}
    assert plan.cost_input_usd_per_million == prices["input"]
    assert plan.cost_output_usd_per_million == prices["output"]
    allowed = None if plan.tools_allow is None else list(plan.tools_allow)
    assert {"allow": allowed, "deny": list(plan.tools_deny or ())} == tools
    folder = shown["workspace"].removesuffix(IN_DATA_DIRECTORY)
    is_own = folder != shown["workspace"]
    assert plan.workspace_dir == str((DATA_DIRECTORY if is_own else FOLDER) / folder)
    assert planned.agent.defaults.max_spawn_depth == shown["maxSpawnDepth"]
    assert planned.agent.subagents.context_preamble_max_chars == shown["contextPreambleMaxChars"]
    assert planned.agent.bootstrap.chars_max == shown["bootstrapMaxChars"]
    assert planned.agent.bootstrap.total_chars_max == shown["bootstrapTotalMaxChars"]


def _reference(verdict: ModelVerdict) -> tuple[str | None, str]:
    return verdict.reference, verdict.verdict

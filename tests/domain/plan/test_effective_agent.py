from typing import Any

from domain.configuration.configuration import Configuration
from domain.plan.effective import EffectiveValue, effective_agent_values

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


def test_an_agent_that_is_not_there_has_no_values() -> None:
    assert effective_agent_values(agents({"id": "a"}), "b") is None
    assert effective_agent_values(agents({"id": "a"}), "no agent id") is None


def test_where_nobody_says_anything_everything_is_built_in() -> None:
    values = values_of(configuration(), "main")

    assert {value.source for value in values.values()} == {"built-in"}
    assert values["maxSpawnDepth"].value == 1
    assert values["maxChildrenPerAgent"].value == 5
    assert values["workspace"].value == "workspaces/main in the data directory"
    assert values["model"].value == "the runtime's own choice"
    assert values["mayName"].value == ["main"]


def test_an_agents_own_word_goes_before_the_defaults() -> None:
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


def test_null_says_nothing() -> None:
    silent = agents({"id": "a", "subagents": {"allowAgents": None}}, subagents={"thinking": " "})

    assert told(silent, "a", "allowAgents") == (None, "built-in")
    assert told(silent, "a", "thinking") == (None, "built-in")


def test_a_level_that_is_none_is_shown_as_it_stands() -> None:
    assert told(agents({"id": "a"}, subagents={"thinking": "turbo"}), "a", "thinking") == (
        "turbo",
        "agents.defaults.subagents.thinking",
    )


def test_the_first_agent_is_the_default_unless_another_is_marked() -> None:
    first = agents({"id": "a"}, {"id": "b"})
    marked = agents({"id": "a"}, {"id": "b", "default": True})

    assert told(first, "a", "default") == (True, "built-in")
    assert told(marked, "a", "default") == (False, "built-in")
    assert told(marked, "b", "default") == (True, "agents.list[1].default")


def test_every_place_that_names_a_model_is_listed_with_what_becomes_of_it() -> None:
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


def test_an_alias_stands_for_its_model_and_the_model_has_its_prices() -> None:
    priced = configuration(
        agents={"defaults": {"model": "Fast", "models": {"p/m": {"alias": "fast"}}}},
        models={"providers": {"p": {"models": [{"id": "m", "cost": {"input": 1, "output": 2}}]}}},
    )

    assert told(priced, "main", "model") == ("p/m", "agents.defaults.model")
    assert told(priced, "main", "prices") == (
        {"input": 1, "output": 2},
        "models.providers.p.models",
    )


def test_the_workspace_of_the_defaults_is_the_default_agents_alone() -> None:
    shared = agents({"id": "a"}, {"id": "b"}, {"id": "c", "workspace": "c"}, workspace="here")

    assert told(shared, "a", "workspace") == ("here", "agents.defaults.workspace")
    assert told(shared, "b", "workspace") == ("workspaces/b in the data directory", "built-in")
    assert told(shared, "c", "workspace") == ("c", "agents.list[2].workspace")


def test_a_runtime_and_a_sandbox_of_the_defaults_hold_for_all() -> None:
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


def test_scripts_are_in_the_order_they_run_and_name_both_places() -> None:
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


def test_the_tools_are_those_of_a_leaf_and_of_an_orchestrator() -> None:
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


def test_the_limits_of_bootstrap_files_are_the_agents_own_or_those_of_the_defaults() -> None:
    limited = agents({"id": "a"}, {"id": "b", "bootstrapMaxChars": 5}, bootstrapTotalMaxChars=7)

    one, total = "bootstrapMaxChars", "bootstrapTotalMaxChars"
    assert told(limited, "a", one) == (20_000, "built-in")
    assert told(limited, "b", one) == (5, "agents.list[1].bootstrapMaxChars")
    assert told(limited, "b", total) == (7, "agents.defaults.bootstrapTotalMaxChars")
    assert told(configuration(), "main", total) == (150_000, "built-in")

# ruff: noqa: E501  (a mistake and its message are read side by side)
"""The roster of agents as `agents.entries`, keyed by id."""

from pathlib import Path
from typing import Any

import pytest

from domain.configuration.problems import ConfigurationError
from domain.plan.effective import effective_agent_values, effective_values
from infrastructure.outbound.configuration.load import configuration_from_stored, load
from tests.support.builders.configurations import load_text, load_values

SHAPES = Path(__file__).parents[3] / "data" / "configurations"
RUNTIME = {"type": "command", "command": ["true"]}
DEV = {"subagents": {"allowAgents": [], "thinking": "low"}, "model": "acme/small"}


def entries(**more: Any) -> dict[str, Any]:
    roster = {"Lead": {"name": "Lead", "subagents": {"allowAgents": ["dev"]}}, "dev": DEV}
    return {"ownership": "explicit", "defaults": {"runtime": RUNTIME, **more}, "entries": roster}


def test_entries_are_read_like_a_list() -> None:
    keyed = load_values({"agents": entries()}).configuration
    listed = load_values(
        {
            "agents": {
                "defaults": {"runtime": RUNTIME},
                "list": [
                    {"id": "Lead", "name": "Lead", "subagents": {"allowAgents": ["dev"]}},
                    {"id": "dev", **DEV},
                ],
            }
        }
    ).configuration
    assert keyed.agent_ids() == ("lead", "dev")
    for agent_id in keyed.agent_ids():
        assert keyed.agent(agent_id) == listed.agent(agent_id)
        assert keyed.effective_agent(agent_id) == listed.effective_agent(agent_id)


def test_entries_stay_entries_in_a_kept_revision() -> None:
    loaded = load_values({"agents": entries()})
    assert loaded.stored["agents"] == entries()
    read_back = configuration_from_stored(loaded.stored)
    assert read_back.agent_ids() == ("lead", "dev")
    written = effective_values(read_back, loaded.stored)["agents"]
    assert list(written["entries"]) == ["lead", "dev"]
    assert "list" not in written


def test_system_agent_is_the_default() -> None:
    assert load_values({"agents": entries()}).configuration.default_agent_id == "lead"
    named = load_values({"agents": entries(systemAgent={"agentId": "DEV"})}).configuration
    assert named.default_agent_id == "dev"
    unknown = load_values({"agents": entries(systemAgent={"agentId": "x"})}).configuration
    assert unknown.default_agent_id == "lead"


def test_values_name_the_entry_they_come_from() -> None:
    rows = effective_agent_values(load_values({"agents": entries()}).configuration, "dev") or ()
    sources = {row.key: row.source for row in rows}
    assert sources["id"] == "agents.entries.dev"
    assert sources["thinking"] == "agents.entries.dev.subagents.thinking"
    assert sources["model"] == "agents.entries.dev.model"


@pytest.mark.parametrize(
    ("agents", "problem"),
    [
        ("{entries: {a: {id: 'a'}}}", "1:25: agents.entries.a.id: the key of the entry is the agent's id; leave this out"),
        ("{entries: {a: {}}, list: []}", "1:20: agents.entries: names agents beside agents.list; keep one of the two"),
        ("{entries: {a: {}, A: {}}}", '1:31: agents.entries.A: there is another agent "a"; ids differ in more than case'),
        ("{entries: {'a b': {}}}", '1:28: agents.entries["a b"]: an agent id is 1 to 64 letters, digits, underscores and hyphens, the first a letter or digit'),
        ("{entries: {a: {subagents: {maxSpawnDepth: 1}}}}", "1:37: agents.entries.a.subagents.maxSpawnDepth: holds for all agents; it belongs into agents.defaults.subagents"),
        ("{entries: {a: {subagents: {allowAgents: 1}}}}", "1:50: agents.entries.a.subagents.allowAgents: must be a list"),
        ("{entries: {a: {runtime: {type: 'command', command: ['${BIN}']}}}}", "1:62: agents.entries.a.runtime.command[0]: ${BIN} is not replaced in a command; put it into env, where it is, and read it there"),
        ("{entries: {a: {workspce: '/x'}}}", '1:25: agents.entries.a.workspce: unknown key; did you mean "workspace"?'),
    ],
)  # fmt: skip
def test_mistake_in_an_entry_names_its_place(agents: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_text(f"{{agents: {agents}}}", "c.json5")
    assert [str(one).removeprefix("c.json5:") for one in refused.value.problems] == [problem]


def test_warning_about_an_entry_names_its_place() -> None:
    agents = {"entries": {"a": {"runtime": RUNTIME, "subagents": {"allowAgents": ["b"]}}}}
    (warning,) = load_values({"agents": agents}).warnings
    assert str(warning).startswith("config: agents.entries.a.subagents.allowAgents[0]: is not")


@pytest.mark.parametrize("shape", sorted(SHAPES.glob("gateway-*.json5")), ids=lambda one: one.stem)
def test_gateway_file_is_read(shape: Path) -> None:
    loaded = load(shape)
    assert loaded.configuration.agent_ids()
    assert configuration_from_stored(loaded.stored).agent_ids() == loaded.configuration.agent_ids()

"""What `config show --agent` says of an agent is what a spawn of it gets that asks for nothing."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from domain.configuration.runtimes import SERVED_RUNTIMES
from domain.plan.child import PlannedChild, RefusedChild
from domain.plan.effective import effective_agent_values
from domain.run.plan_facts import ModelVerdict
from domain.values.thinking_level import normalise_thinking
from tests.support.builders.configured_spawns import Rules
from tests.support.builders.placed_configurations import PlacedConfigurations
from tests.support.builders.planned_children import asked
from tests.support.builders.spawn_plans import plan_spawn
from tests.support.models.plan_words import WORKSPACES
from tests.support.models.random_plans import PLANNING

FOLDER = Path("/nowhere")
DATA_DIRECTORY = (FOLDER / WORKSPACES).parent
IN_DATA_DIRECTORY = " in the data directory"
OWN_CHOICE = "the runtime's own choice"


@given(rules=PLANNING, pick=st.integers(0, 3))
def test_what_is_shown_of_an_agent_is_what_its_child_gets(rules: Rules, pick: int) -> None:
    configurations = PlacedConfigurations(FOLDER)
    configurations.read(rules.configuration())
    pinned = configurations.current()
    ids = pinned.configuration.agent_ids()
    agent_id = ids[pick % len(ids)]
    values = effective_agent_values(pinned.configuration, agent_id)
    assert values is not None
    shown = {one.key: one.value for one in values}
    run = asked(agent_id, {"agent_id": "somebody", "sandboxed": False})
    planned = plan_spawn(run, pinned, configurations.workspaces)
    _must_be_as_shown(planned, shown)


def _must_be_as_shown(planned: PlannedChild | RefusedChild, shown: dict[str, Any]) -> None:
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
    models = [(one["model"], one["verdict"]) for one in shown["models"]]
    assert [_reference(one) for one in planned.facts.models or ()] == models
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

"""What a child runs with: model, thinking, time and tools."""

from pathlib import Path
from typing import Any

import pytest

from domain.configuration.configuration import Configuration
from domain.plan.child import plan_with_hours
from domain.plan.model import UNNAMED_MODEL
from domain.run.facts import Plan
from domain.run.plan_facts import ModelVerdict
from tests.support.builders.planned_children import (
    SCRIPTED,
    Workspaces,
    asked,
    configuration,
    plan_of,
    unfit,
)
from tests.support.builders.run_histories import overridden, resolved
from tests.support.builders.storytelling import ref, requested, requester, run_of
from tests.support.models.log_invariants import stored_and_read


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path)


def test_a_child_of_the_same_agent_has_its_callers_model_and_thinking(
    workspaces: Workspaces,
) -> None:
    caller = {"model": "p/caller", "thinking": "high"}
    agents = ({"id": "main", "model": "p/agents"}, {"id": "helper", "model": "p/helpers"})
    made = plan_of(workspaces, asked(asks=caller), configuration(*agents))
    assert (made.plan.model, made.plan.model_source) == ("caller", "caller")
    assert (made.plan.thinking, made.plan.thinking_source) == ("high", "caller")
    other = plan_of(workspaces, asked("helper", caller), configuration(*agents))
    assert (other.plan.model, other.plan.model_source) == ("helpers", "agent")
    assert (other.plan.thinking, other.plan.thinking_source) == (None, None)


def test_what_a_caller_says_of_itself_now_counts_before_its_record(workspaces: Workspaces) -> None:
    caller = {"model": "p/then", "thinking": "high"}
    says = {"active_model": "p/now", "active_thinking": "low"}
    made = plan_of(workspaces, asked(asks=caller, options=says), configuration({"id": "main"}))
    assert (made.plan.model, made.plan.thinking) == ("now", "low")


def test_the_agent_that_will_run_decides_who_inherits(workspaces: Workspaces) -> None:
    run = run_of(
        requested(requested_agent_id="main", requester=requester(model="p/caller")),
        resolved(),
        overridden(),
    )
    made = plan_of(workspaces, run, configuration({"id": "main"}, {"id": "steward"}))
    assert (made.plan.model, made.plan.model_source) == (None, "runtime")


def test_a_fallback_is_taken_when_the_runtime_does_not_serve_its_primary(
    workspaces: Workspaces,
) -> None:
    runtime = {**SCRIPTED, "models": ["p/*"]}
    model = {"primary": "q/big", "fallbacks": ["p/small"]}
    for place in ({"model": model}, {"subagents": {"model": model}}):
        made = plan_of(
            workspaces,
            asked("helper"),
            configuration({"id": "helper", "runtime": runtime, **place}),
        )
        assert (made.plan.model_provider, made.plan.model) == ("p", "small")
        assert made.plan.model_applied is False
        assert made.warnings[0].startswith('Model "q/big" from the agent\'s ')
        assert made.facts.served_models == ("p/*",)
        workspaces.folder.joinpath("helper").rmdir()


def test_it_is_said_whether_the_model_that_was_named_is_the_one_told(
    workspaces: Workspaces,
) -> None:
    def applied(**options: Any) -> bool | None:
        run = asked(asks={"workspace_dir": "/w"}, **options)
        return plan_of(workspaces, run, configuration({"id": "main"})).plan.model_applied

    assert applied() is None
    assert applied(options={"model": "p/m"}) is True
    assert applied(model_argument=ref("no name")) is False


def test_a_plan_without_any_model_is_read_back_from_a_row(workspaces: Workspaces) -> None:
    """Rows leave out what is None."""
    plan = plan_of(workspaces, asked(), configuration({"id": "main"})).plan
    assert (plan.model, plan.model_applied) == (None, None)
    assert Plan.from_json(plan.to_json().decode()) == plan


def test_an_argument_that_is_no_name_is_skipped_with_a_warning(workspaces: Workspaces) -> None:
    run = asked(model_argument=ref("a model, please"))
    made = plan_of(workspaces, run, configuration({"id": "main", "model": "p/m"}))
    assert (made.plan.model, made.plan.model_applied) == ("m", False)
    assert made.warnings == (UNNAMED_MODEL,)
    assert made.facts.models is not None
    assert made.facts.models[0] == ModelVerdict(
        source="argument", reference=None, verdict="no_name"
    )


def test_a_word_that_is_no_level_is_told_and_not_recorded(workspaces: Workspaces) -> None:
    run = asked(thinking_argument=ref("banana"))
    refused = unfit(workspaces, run, configuration({"id": "main"}), thinking="banana")
    assert (refused.refusal.rule, refused.refusal.status) == ("thinking", "error")
    assert '"banana"' in refused.refusal.text
    assert "banana" not in refused.facts.to_json().decode()


@pytest.mark.parametrize(
    ("argument", "seconds", "source"),
    [(None, 30, "defaults"), (2.9, 2, "argument"), (-4.0, 0, "argument"), (0.0, 0, "argument")],
)
def test_the_limit_is_rounded_and_it_is_known_whose_it_is(
    workspaces: Workspaces, argument: float | None, seconds: int, source: str
) -> None:
    run = asked(options={"run_timeout_seconds": argument})
    made = plan_of(
        workspaces, run, configuration({"id": "main"}, subagents={"runTimeoutSeconds": 30})
    )
    assert (made.plan.run_timeout_seconds, made.plan.run_timeout_source) == (seconds, source)
    assert made.facts.run_timeout is not None
    assert (made.facts.run_timeout.argument, made.facts.run_timeout.configured) == (argument, 30)


def test_tools_are_denied_by_depth_and_list(workspaces: Workspaces) -> None:
    """A child at the last depth is a leaf; a list of one's own replaces the default."""
    deep = {"id": "main"}
    leaf = plan_of(workspaces, asked(asks={"workspace_dir": "/w"}), configuration(deep))
    assert {"sessions_spawn", "subagents", "cron"} <= set(leaf.plan.tools_deny)
    above = plan_of(
        workspaces,
        asked(asks={"workspace_dir": "/w"}),
        configuration(deep, subagents={"maxSpawnDepth": 2}),
    )
    assert above.capabilities.role == "orchestrator"
    assert not {"sessions_spawn", "subagents"} & set(above.plan.tools_deny)
    own = Configuration.model_validate(
        {
            "agents": {"list": [deep], "defaults": {"runtime": SCRIPTED}},
            "tools": {"subagents": {"tools": {"deny": ["exec"]}}},
        }
    )
    replaced = plan_of(workspaces, asked(asks={"workspace_dir": "/w"}), own)
    assert "exec" in replaced.plan.tools_deny
    assert "cron" not in replaced.plan.tools_deny
    assert "sessions_send" in replaced.plan.tools_deny


def test_whole_number_of_a_file_is_recorded_as_float(workspaces: Workspaces) -> None:
    model = {"id": "m", "cost": {"input": 3, "output": 15}}
    given = Configuration.model_validate(
        {
            "agents": {"list": [{"id": "main", "model": "p/m"}], "defaults": {"runtime": SCRIPTED}},
            "models": {"providers": {"p": {"models": [model]}}},
            "session": {"threadBindings": {"idleHours": 2, "maxAgeHours": 24}},
        }
    )
    run = asked(options={"mode": "session"})
    planned = plan_with_hours(plan_of(workspaces, run, given).plan, run, given)
    assert (planned.cost_input_usd_per_million, planned.max_age_hours) == (3, 24)
    assert stored_and_read(planned) == planned

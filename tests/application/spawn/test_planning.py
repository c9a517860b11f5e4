"""What speaks against a child, in which order, and where it works."""

from pathlib import Path
from typing import Any, cast

import pytest

from application.ports.files import WorkspaceForbidden
from domain.plan.child import PlannedChild, RefusedChild
from domain.run.plan_facts import ModelVerdict, PlanFacts, WorkspaceFacts
from domain.spawn import pipeline
from tests.support.builders.planned_children import (
    BOXED,
    ISOLATING,
    SCRIPTED,
    Workspaces,
    asked,
    configuration,
    decided,
    plan_of,
    unfit,
)


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path)


def test_an_agent_that_is_not_configured_gets_no_folder(workspaces: Workspaces) -> None:
    refused = unfit(workspaces, asked("nobody"), configuration({"id": "main", **BOXED}))
    assert refused.refusal.rule == "agent_unknown"
    assert refused.facts == PlanFacts(agent_configured=False)
    assert workspaces.asked == []
    assert list(workspaces.folder.iterdir()) == []


def test_the_rules_speak_in_their_order(workspaces: Workspaces) -> None:
    """One thing after the other is put in order; each time the next rule speaks."""
    agent: dict[str, Any] = {"id": "helper", **BOXED, "subagents": {"thinking": "banana"}}
    agent["runtime"] = {"type": "worker", "queue": "q"}
    workspaces.unusable = PermissionError(13, "Permission denied")
    rules = []
    steps: list[dict[str, Any]] = [
        {},
        {"id": "worker"},
        {"sandbox": {"mode": "off"}},
        {"subagents": {"thinking": "low"}},
        {"runtime": SCRIPTED},
    ]
    for step in steps:
        agent |= step
        rules.append(unfit(workspaces, asked("worker"), configuration(agent)).refusal.rule)
    assert rules == ["agent_unknown", "sandbox", "thinking", "runtime", "workspace"]
    assert len(workspaces.asked) == 1
    workspaces.unusable = None
    assert isinstance(decided(workspaces, asked("worker"), configuration(agent)), PlannedChild)


def test_what_was_looked_at_is_recorded_as_far_as_it_came(workspaces: Workspaces) -> None:
    agent = {"id": "main", "model": "p/m", "subagents": {"thinking": "banana"}}
    facts = unfit(workspaces, asked(), configuration(agent)).facts
    assert facts.agent_configured is True
    assert facts.sandbox is not None
    assert facts.models == (ModelVerdict(source="agent", reference="p/m", verdict="taken"),)
    assert facts.thinking is not None
    assert (facts.thinking.taken_from, facts.thinking.agent_subagents) == ("agent_subagents", None)
    assert (facts.run_timeout, facts.runtime, facts.workspace) == (None, None, None)


def test_a_sandboxed_requester_is_judged_before_what_was_required(workspaces: Workspaces) -> None:
    options = {"sandbox": "require"}
    both = unfit(
        workspaces, asked(asks={"sandboxed": True}, options=options), configuration({"id": "main"})
    )
    assert (both.refusal.rule, both.refusal.status) == ("sandbox", "forbidden")
    assert both.refusal.text.startswith("Sandboxed sessions cannot spawn")
    only = unfit(workspaces, asked(options=options), configuration({"id": "main"}))
    assert only.refusal.text.startswith('sessions_spawn sandbox="require"')


def test_a_request_only_tightens_what_is_on_record(workspaces: Workspaces) -> None:
    outside = configuration({"id": "main"})
    says = {"requester_sandboxed": True}
    assert isinstance(
        decided(workspaces, asked(asks={"sandboxed": False}, options=says), outside), RefusedChild
    )
    assert isinstance(decided(workspaces, asked(asks={"sandboxed": True}), outside), RefusedChild)
    assert isinstance(decided(workspaces, asked(asks={"sandboxed": False}), outside), PlannedChild)


@pytest.mark.parametrize("mode", ["all", "non-main"])
def test_a_sandbox_needs_a_runtime_that_provides_it(workspaces: Workspaces, mode: str) -> None:
    agent = {"id": "main", "sandbox": {"mode": mode}}
    refused = unfit(workspaces, asked(), configuration(agent))
    assert (refused.refusal.rule, refused.refusal.status) == ("sandbox", "error")
    made = plan_of(
        workspaces,
        asked(asks={"sandboxed": True}, options={"sandbox": "require"}),
        configuration({**agent, "runtime": ISOLATING}),
    )
    assert made.plan.sandboxed is True
    assert made.facts.sandbox is not None
    assert made.facts.sandbox.members() == {
        "mode": mode,
        "childSandboxed": True,
        "runtimeProvides": True,
        "requesterSandboxed": True,
        "required": True,
    }


def test_a_child_of_the_same_agent_works_where_its_requester_does(workspaces: Workspaces) -> None:
    made = plan_of(
        workspaces, asked(asks={"workspace_dir": "/w/on-record"}), configuration({"id": "main"})
    )
    assert (made.plan.workspace_dir, made.plan.workspace_source) == ("/w/on-record", "requester")
    assert made.facts.workspace == WorkspaceFacts(
        source="requester", recorded="/w/on-record", chosen="/w/on-record"
    )


def test_a_root_session_says_where_it_works(workspaces: Workspaces) -> None:
    made = plan_of(workspaces, asked(), configuration({"id": "main"}), workspace="/w/asked")
    assert (made.plan.workspace_dir, made.plan.workspace_source) == ("/w/asked", "requester")
    assert workspaces.asked == [("main", None, "/w/asked")]
    unsaid = plan_of(workspaces, asked(), configuration({"id": "main"}))
    assert unsaid.plan.workspace_source == "agent"


def test_a_child_of_another_agent_works_in_that_agents_folder(workspaces: Workspaces) -> None:
    configured = configuration({"id": "main"}, {"id": "helper"})
    run = asked("helper", {"workspace_dir": "/w/on-record"})
    made = plan_of(workspaces, run, configured, workspace="/w/asked")
    assert made.plan.workspace_dir == str(workspaces.folder / "helper")
    assert made.facts.workspace == WorkspaceFacts(
        source="agent", recorded=None, chosen=made.plan.workspace_dir
    )
    assert made.warnings == (
        'The workspaceDir of the request was not used: the child is of agent "helper" and works in'
        " that agent's own folder. Only a child of its requester's agent works where it does.",
    )


def test_nothing_is_warned_of_where_no_folder_is_dropped(workspaces: Workspaces) -> None:
    configured = configuration({"id": "main"}, {"id": "helper"})
    on_record = {"workspace_dir": "/w/on-record"}
    assert plan_of(workspaces, asked("helper", on_record), configured).warnings == ()
    assert plan_of(workspaces, asked(asks=on_record), configured, workspace="/w").warnings == ()


def test_a_folder_that_is_dropped_is_told_of_beside_a_model_that_is(
    workspaces: Workspaces,
) -> None:
    configured = configuration({"id": "helper", "runtime": {**SCRIPTED, "models": ["p/*"]}})
    run = asked("helper", options={"model": "q/big"})
    model, folder = plan_of(workspaces, run, configured, workspace="/w/asked").warnings
    assert model.startswith('Model "q/big"')
    assert folder.startswith("The workspaceDir of the request was not used")


@pytest.mark.parametrize(("name", "is_applied"), [("bad-model", False), ("good", True)])
def test_a_bare_name_is_not_guessed_to_be_of_the_runtimes_provider(
    workspaces: Workspaces, name: str, is_applied: bool
) -> None:
    runtime = {**SCRIPTED, "models": ["p/*"]}
    configured = configuration({"id": "main", "runtime": runtime}, models={"p/good": {}})
    made = plan_of(workspaces, asked(options={"model": name}), configured)
    assert (made.plan.model, made.plan.model_applied) == (name if is_applied else None, is_applied)
    assert [warning.split(" from ")[0] for warning in made.warnings] == (
        [] if is_applied else [f'Model "{name}"']
    )


@pytest.mark.parametrize(
    ("asks", "texts", "text"),
    [
        (
            {},
            {},
            'The workspace of agent "main" cannot be made: Not a directory. Give the agent another'
            " workspace, or mend this one.",
        ),
        (
            {"workspace_dir": "/gone"},
            {},
            "The workspace on record for the requester cannot be used: Not a directory. Put the"
            " folder back, or ask from another session.",
        ),
        (
            {"workspace_dir": "/gone"},
            {"workspace": "/gone/too"},
            "The workspace that the request names cannot be used: Not a directory. Name a folder"
            " that is there, or leave workspaceDir out.",
        ),
    ],
)
def test_a_folder_that_cannot_be_used_refuses_in_the_callers_words(
    workspaces: Workspaces, asks: dict[str, str], texts: dict[str, Any], text: str
) -> None:
    workspaces.unusable = NotADirectoryError(20, "Not a directory")
    refused = unfit(workspaces, asked(asks=asks), configuration({"id": "main"}), **texts)
    assert (refused.refusal.rule, refused.refusal.status) == ("workspace", "error")
    assert refused.refusal.text == text
    assert refused.facts.workspace is not None
    assert refused.facts.workspace.chosen is None


def test_a_folder_that_may_not_be_used_refuses_in_the_words_of_who_knows_why(
    workspaces: Workspaces,
) -> None:
    workspaces.unusable = WorkspaceForbidden("not below a root")
    refused = unfit(workspaces, asked(), configuration({"id": "main"}), workspace="/etc")
    assert (refused.refusal.rule, refused.refusal.text) == ("workspace", "not below a root")
    assert refused.facts.workspace == WorkspaceFacts(source="requester", recorded=None)


def test_requests_of_one_shape_have_one_frame_and_folders_of_their_own(
    workspaces: Workspaces,
) -> None:
    frames = cast("Any", pipeline)._kept_frame
    frames.cache_clear()
    under = configuration({"id": "main"})
    first = plan_of(workspaces, asked(label="one"), under)
    inherits = {"workspace_dir": str(workspaces.folder)}
    second = plan_of(workspaces, asked(asks=inherits, label="two"), under)
    assert (frames.cache_info().misses, frames.cache_info().hits) == (1, 1)
    assert second.facts.changed({"workspace": None}) == first.facts.changed({"workspace": None})
    assert second.plan.workspace_source == "requester" != first.plan.workspace_source
    plan_of(workspaces, asked(options={"run_timeout_seconds": 5.0}), under)
    plan_of(workspaces, asked(asks={"model": "p/other"}), under)
    plan_of(workspaces, asked(), configuration({"id": "main", "model": "p/m"}))
    assert frames.cache_info().misses == 4


def test_a_text_that_can_be_erased_is_in_no_frame(workspaces: Workspaces) -> None:
    frames = cast("Any", pipeline)._kept_frame
    frames.cache_clear()
    assert unfit(workspaces, asked(), configuration({"id": "main"}), thinking="banana").facts
    assert frames.cache_info().currsize == 0

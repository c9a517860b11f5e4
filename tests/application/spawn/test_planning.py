"""What a child runs with, what speaks against it, in which order, and where it works."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from application.log.envelope import SYSTEM
from application.ports.configurations import PinnedConfiguration
from application.ports.files import WorkspaceForbidden
from application.spawn.request import spawn_command
from domain.configuration.configuration import Configuration
from domain.plan.child import PlannedChild, RefusedChild, plan_with_hours
from domain.plan.credentials import FoundCredentials, MissingCredential
from domain.plan.model import UNNAMED_MODEL
from domain.run.facts import Plan
from domain.run.plan_facts import CredentialFacts, ModelVerdict, PlanFacts, WorkspaceFacts
from domain.spawn import pipeline
from domain.spawn.request import RequestSpawn
from infrastructure.outbound.identity.identifiers import RandomIdentities
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
from tests.support.builders.run_histories import overridden, resolved
from tests.support.builders.spawn_plans import resolved_spawn
from tests.support.builders.storytelling import ref, requested, requester, run_of
from tests.support.models.log_invariants import stored_and_read

Planned = Callable[..., PlannedChild]
Refuse = Callable[..., RefusedChild]
Decide = Callable[..., PlannedChild | RefusedChild]
MAIN = configuration({"id": "main"})


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path)


@pytest.fixture
def plan(workspaces: Workspaces) -> Planned:
    return partial(plan_of, workspaces)


@pytest.fixture
def refuse(workspaces: Workspaces) -> Refuse:
    return partial(unfit, workspaces)


@pytest.fixture
def decide(workspaces: Workspaces) -> Decide:
    return partial(decided, workspaces)


def test_unconfigured_agent_gets_no_folder(refuse: Refuse, workspaces: Workspaces) -> None:
    refused = refuse(asked("nobody"), configuration({"id": "main", **BOXED}))
    assert refused.refusal.rule == "agent_unknown"
    assert refused.facts == PlanFacts(agent_configured=False)
    assert workspaces.asked == []
    assert list(workspaces.folder.iterdir()) == []


def test_rules_refuse_in_their_order(
    refuse: Refuse, decide: Decide, workspaces: Workspaces
) -> None:
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
        rules.append(refuse(asked("worker"), configuration(agent)).refusal.rule)
    assert rules == ["agent_unknown", "sandbox", "thinking", "runtime", "workspace"]
    assert len(workspaces.asked) == 1
    workspaces.unusable = None
    assert isinstance(decide(asked("worker"), configuration(agent)), PlannedChild)


def test_facts_are_recorded_as_far_as_it_came(refuse: Refuse) -> None:
    agent = {"id": "main", "model": "p/m", "subagents": {"thinking": "banana"}}
    facts = refuse(asked(), configuration(agent)).facts
    assert facts.agent_configured is True
    assert facts.sandbox is not None
    assert facts.models == (ModelVerdict(source="agent", reference="p/m", verdict="taken"),)
    assert facts.thinking is not None
    assert (facts.thinking.taken_from, facts.thinking.agent_subagents) == ("agent_subagents", None)
    assert (facts.run_timeout, facts.runtime, facts.workspace) == (None, None, None)


def test_a_sandboxed_requester_is_judged_before_what_was_required(refuse: Refuse) -> None:
    options = {"sandbox": "require"}
    both = refuse(asked(asks={"sandboxed": True}, options=options), MAIN)
    assert (both.refusal.rule, both.refusal.status) == ("sandbox", "forbidden")
    assert both.refusal.text.startswith("Sandboxed sessions cannot spawn")
    only = refuse(asked(options=options), MAIN)
    assert only.refusal.text.startswith('sessions_spawn sandbox="require"')


def test_a_request_only_tightens_what_is_on_record(decide: Decide) -> None:
    outside = MAIN
    says = {"requester_sandboxed": True}
    assert isinstance(decide(asked(asks={"sandboxed": False}, options=says), outside), RefusedChild)
    assert isinstance(decide(asked(asks={"sandboxed": True}), outside), RefusedChild)
    assert isinstance(decide(asked(asks={"sandboxed": False}), outside), PlannedChild)


@pytest.mark.parametrize("mode", ["all", "non-main"])
def test_a_sandbox_needs_a_runtime_that_provides_it(
    plan: Planned, refuse: Refuse, mode: str
) -> None:
    agent = {"id": "main", "sandbox": {"mode": mode}}
    refused = refuse(asked(), configuration(agent))
    assert (refused.refusal.rule, refused.refusal.status) == ("sandbox", "error")
    made = plan(
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


def test_a_child_of_the_same_agent_works_where_its_requester_does(plan: Planned) -> None:
    made = plan(asked(asks={"workspace_dir": "/w/on-record"}), MAIN)
    assert (made.plan.workspace_dir, made.plan.workspace_source) == ("/w/on-record", "requester")
    assert made.facts.workspace == WorkspaceFacts(
        source="requester", recorded="/w/on-record", chosen="/w/on-record"
    )


def test_a_root_session_says_where_it_works(plan: Planned, workspaces: Workspaces) -> None:
    made = plan(asked(), MAIN, workspace="/w/asked")
    assert (made.plan.workspace_dir, made.plan.workspace_source) == ("/w/asked", "requester")
    assert workspaces.asked == [("main", None, "/w/asked")]
    unsaid = plan(asked(), MAIN)
    assert unsaid.plan.workspace_source == "agent"


def test_a_child_of_another_agent_works_in_that_agents_folder(
    plan: Planned, workspaces: Workspaces
) -> None:
    configured = configuration({"id": "main"}, {"id": "helper"})
    run = asked("helper", {"workspace_dir": "/w/on-record"})
    made = plan(run, configured, workspace="/w/asked")
    assert made.plan.workspace_dir == str(workspaces.folder / "helper")
    assert made.facts.workspace == WorkspaceFacts(
        source="agent", recorded=None, chosen=made.plan.workspace_dir
    )
    assert made.warnings == (
        'The workspaceDir of the request was not used: the child is of agent "helper" and works in'
        " that agent's own folder. Only a child of its requester's agent works where it does.",
    )


def test_no_warning_without_a_dropped_folder(plan: Planned) -> None:
    configured = configuration({"id": "main"}, {"id": "helper"})
    on_record = {"workspace_dir": "/w/on-record"}
    assert plan(asked("helper", on_record), configured).warnings == ()
    assert plan(asked(asks=on_record), configured, workspace="/w").warnings == ()


def test_dropped_folder_and_model_are_both_warned_of(plan: Planned) -> None:
    configured = configuration({"id": "helper", "runtime": {**SCRIPTED, "models": ["p/*"]}})
    run = asked("helper", options={"model": "q/big"})
    model, folder = plan(run, configured, workspace="/w/asked").warnings
    assert model.startswith('Model "q/big"')
    assert folder.startswith("The workspaceDir of the request was not used")


@pytest.mark.parametrize(("name", "is_applied"), [("bad-model", False), ("good", True)])
def test_a_bare_name_is_not_guessed_to_be_of_the_runtimes_provider(
    plan: Planned, name: str, is_applied: bool
) -> None:
    runtime = {**SCRIPTED, "models": ["p/*"]}
    configured = configuration({"id": "main", "runtime": runtime}, models={"p/good": {}})
    made = plan(asked(options={"model": name}), configured)
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
def test_unusable_folder_refuses_in_callers_words(
    refuse: Refuse, workspaces: Workspaces, asks: dict[str, str], texts: dict[str, Any], text: str
) -> None:
    workspaces.unusable = NotADirectoryError(20, "Not a directory")
    refused = refuse(asked(asks=asks), MAIN, **texts)
    assert (refused.refusal.rule, refused.refusal.status) == ("workspace", "error")
    assert refused.refusal.text == text
    assert refused.facts.workspace is not None
    assert refused.facts.workspace.chosen is None


def test_a_folder_that_may_not_be_used_refuses_in_the_words_of_who_knows_why(
    refuse: Refuse, workspaces: Workspaces
) -> None:
    workspaces.unusable = WorkspaceForbidden("not below a root")
    refused = refuse(asked(), MAIN, workspace="/etc")
    assert (refused.refusal.rule, refused.refusal.text) == ("workspace", "not below a root")
    assert refused.facts.workspace == WorkspaceFacts(source="requester", recorded=None)


def test_requests_of_one_shape_have_one_frame_and_folders_of_their_own(
    plan: Planned, workspaces: Workspaces
) -> None:
    frames = cast("Any", pipeline)._kept_frame
    frames.cache_clear()
    under = MAIN
    first = plan(asked(label="one"), under)
    inherits = {"workspace_dir": str(workspaces.folder)}
    second = plan(asked(asks=inherits, label="two"), under)
    assert (frames.cache_info().misses, frames.cache_info().hits) == (1, 1)
    assert second.facts.changed({"workspace": None}) == first.facts.changed({"workspace": None})
    assert second.plan.workspace_source == "requester" != first.plan.workspace_source
    plan(asked(options={"run_timeout_seconds": 5.0}), under)
    plan(asked(asks={"model": "p/other"}), under)
    plan(asked(), configuration({"id": "main", "model": "p/m"}))
    assert frames.cache_info().misses == 4


def test_a_text_that_can_be_erased_is_in_no_frame(refuse: Refuse) -> None:
    frames = cast("Any", pipeline)._kept_frame
    frames.cache_clear()
    assert refuse(asked(), MAIN, thinking="banana").facts
    assert frames.cache_info().currsize == 0


def test_a_child_of_the_same_agent_has_its_callers_model_and_thinking(plan: Planned) -> None:
    caller = {"model": "p/caller", "thinking": "high"}
    agents = ({"id": "main", "model": "p/agents"}, {"id": "helper", "model": "p/helpers"})
    made = plan(asked(asks=caller), configuration(*agents))
    assert (made.plan.model, made.plan.model_source) == ("caller", "caller")
    assert (made.plan.thinking, made.plan.thinking_source) == ("high", "caller")
    other = plan(asked("helper", caller), configuration(*agents))
    assert (other.plan.model, other.plan.model_source) == ("helpers", "agent")
    assert (other.plan.thinking, other.plan.thinking_source) == (None, None)


def test_what_a_caller_says_of_itself_now_counts_before_its_record(plan: Planned) -> None:
    caller = {"model": "p/then", "thinking": "high"}
    says = {"active_model": "p/now", "active_thinking": "low"}
    made = plan(asked(asks=caller, options=says), MAIN)
    assert (made.plan.model, made.plan.thinking) == ("now", "low")


def test_the_agent_that_will_run_decides_who_inherits(plan: Planned) -> None:
    run = run_of(
        requested(requested_agent_id="main", requester=requester(model="p/caller")),
        resolved(),
        overridden(),
    )
    made = plan(run, configuration({"id": "main"}, {"id": "steward"}))
    assert (made.plan.model, made.plan.model_source) == (None, "runtime")


def test_a_fallback_is_taken_when_the_runtime_does_not_serve_its_primary(
    plan: Planned, workspaces: Workspaces
) -> None:
    runtime = {**SCRIPTED, "models": ["p/*"]}
    model = {"primary": "q/big", "fallbacks": ["p/small"]}
    for place in ({"model": model}, {"subagents": {"model": model}}):
        made = plan(
            asked("helper"),
            configuration({"id": "helper", "runtime": runtime, **place}),
        )
        assert (made.plan.model_provider, made.plan.model) == ("p", "small")
        assert made.plan.model_applied is False
        assert made.warnings[0].startswith('Model "q/big" from the agent\'s ')
        assert made.facts.served_models == ("p/*",)
        workspaces.folder.joinpath("helper").rmdir()


def test_plan_says_whether_the_named_model_is_applied(plan: Planned) -> None:
    def applied(**options: Any) -> bool | None:
        run = asked(asks={"workspace_dir": "/w"}, **options)
        return plan(run, MAIN).plan.model_applied

    assert applied() is None
    assert applied(options={"model": "p/m"}) is True
    assert applied(model_argument=ref("no name")) is False


def test_a_plan_without_any_model_is_read_back_from_a_row(plan: Planned) -> None:
    """Rows leave out what is None."""
    made = plan(asked(), MAIN).plan
    assert (made.model, made.model_applied) == (None, None)
    assert Plan.from_json(made.to_json().decode()) == made


def test_an_argument_that_is_no_name_is_skipped_with_a_warning(plan: Planned) -> None:
    run = asked(model_argument=ref("a model, please"))
    made = plan(run, configuration({"id": "main", "model": "p/m"}))
    assert (made.plan.model, made.plan.model_applied) == ("m", False)
    assert made.warnings == (UNNAMED_MODEL,)
    assert made.facts.models is not None
    assert made.facts.models[0] == ModelVerdict(
        source="argument", reference=None, verdict="no_name"
    )


def test_a_word_that_is_no_level_is_told_and_not_recorded(refuse: Refuse) -> None:
    run = asked(thinking_argument=ref("banana"))
    refused = refuse(run, MAIN, thinking="banana")
    assert (refused.refusal.rule, refused.refusal.status) == ("thinking", "error")
    assert '"banana"' in refused.refusal.text
    assert "banana" not in refused.facts.to_json().decode()


@pytest.mark.parametrize(
    ("argument", "seconds", "source"),
    [(None, 30, "defaults"), (2.9, 2, "argument"), (-4.0, 0, "argument"), (0.0, 0, "argument")],
)
def test_the_limit_is_rounded_and_it_is_known_whose_it_is(
    plan: Planned, argument: float | None, seconds: int, source: str
) -> None:
    run = asked(options={"run_timeout_seconds": argument})
    made = plan(run, configuration({"id": "main"}, subagents={"runTimeoutSeconds": 30}))
    assert (made.plan.run_timeout_seconds, made.plan.run_timeout_source) == (seconds, source)
    assert made.facts.run_timeout is not None
    assert (made.facts.run_timeout.argument, made.facts.run_timeout.configured) == (argument, 30)


def test_tools_are_denied_by_depth_and_list(plan: Planned) -> None:
    """A child at the last depth is a leaf; a list of one's own replaces the default."""
    deep = {"id": "main"}
    leaf = plan(asked(asks={"workspace_dir": "/w"}), configuration(deep))
    assert {"sessions_spawn", "subagents", "cron"} <= set(leaf.plan.tools_deny)
    above = plan(
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
    replaced = plan(asked(asks={"workspace_dir": "/w"}), own)
    assert "exec" in replaced.plan.tools_deny
    assert "cron" not in replaced.plan.tools_deny
    assert "sessions_send" in replaced.plan.tools_deny


def test_whole_number_of_a_file_is_recorded_as_float(plan: Planned) -> None:
    model = {"id": "m", "cost": {"input": 3, "output": 15}}
    given = Configuration.model_validate(
        {
            "agents": {"list": [{"id": "main", "model": "p/m"}], "defaults": {"runtime": SCRIPTED}},
            "models": {"providers": {"p": {"models": [model]}}},
            "session": {"threadBindings": {"idleHours": 2, "maxAgeHours": 24}},
        }
    )
    run = asked(options={"mode": "session"})
    planned = plan_with_hours(plan(run, given).plan, run, given)
    assert (planned.cost_input_usd_per_million, planned.max_age_hours) == (3, 24)
    assert stored_and_read(planned) == planned


UNSET = MissingCredential("LARGE_API_KEY", "LARGE_API_KEY is not set", is_unset=True)
LOST = MissingCredential("a:b", 'profile "a:b" is in a file that is not there')


def test_the_plan_names_the_profiles_that_are_given(plan: Planned) -> None:
    credentials = FoundCredentials(("a:default", "b:default"), given=("b:default",))
    made = plan(asked(), MAIN, credentials=credentials)
    assert made.plan.auth_profiles == ("b:default",)
    assert made.facts.credentials == CredentialFacts(profile_ids=("a:default", "b:default"))


def test_without_any_the_record_says_that_there_are_none(plan: Planned) -> None:
    made = plan(asked(), MAIN)
    assert made.plan.auth_profiles == ()
    assert made.facts.credentials == CredentialFacts(profile_ids=())


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ((UNSET,), "LARGE_API_KEY is not set. Set it in the environment of every server"),
        ((LOST,), 'profile "a:b" is in a file that is not there. Mend it on every server'),
        (
            (UNSET, LOST, UNSET),
            'LARGE_API_KEY is not set; profile "a:b" is in a file that is not there. Mend them on'
            " every server",
        ),
    ],
)
def test_missing_credentials_refuse_and_say_what_to_do(
    refuse: Refuse, workspaces: Workspaces, missing: tuple[MissingCredential, ...], told: str
) -> None:
    credentials = FoundCredentials(("a:b",), ("a:b",), missing)
    refused = refuse(asked(), MAIN, credentials=credentials)
    assert (refused.refusal.rule, refused.refusal.status) == ("credentials", "error")
    assert refused.refusal.text == (
        f'The credentials of agent "main" cannot be had: {told}, or name another agent.'
    )
    assert refused.facts.credentials == CredentialFacts(
        profile_ids=("a:b",), missing=tuple(dict.fromkeys(one.name for one in missing))
    )
    assert workspaces.asked == []


def test_many_that_are_missing_are_counted(refuse: Refuse) -> None:
    missing = tuple(MissingCredential(f"K{n}", f"K{n} is not set", True) for n in range(60))
    refused = refuse(
        asked(),
        MAIN,
        credentials=FoundCredentials(missing=missing),
    )
    assert "K4 is not set; and 55 more. Set them in" in refused.refusal.text
    assert refused.facts.credentials is not None
    assert len(refused.facts.credentials.missing) == 50


def test_the_runtime_is_judged_before_and_the_folder_behind(
    refuse: Refuse, decide: Decide, workspaces: Workspaces
) -> None:
    credentials = FoundCredentials(missing=(UNSET,))
    workspaces.unusable = PermissionError(13, "Permission denied")
    worker = configuration({"id": "main", "runtime": {"type": "worker", "queue": "q"}})
    refused = refuse(asked(), worker, credentials=credentials)
    assert (refused.refusal.rule, refused.facts.credentials) == ("runtime", None)
    plain = configuration({"id": "main", "runtime": SCRIPTED})
    refused = refuse(asked(), plain, credentials=credentials)
    assert refused.refusal.rule == "credentials"
    assert refuse(asked(), plain).refusal.rule == "workspace"
    workspaces.unusable = None
    assert not isinstance(decide(asked(), plain), type(refused))


MODELS: dict[str, Any] = {"anthropic/claude": {"alias": " My Claude "}, "p/opus": {"alias": "opus"}}


def command_for(model: str | None) -> RequestSpawn:
    configuration = Configuration.model_validate({"agents": {"defaults": {"models": MODELS}}})
    request = resolved_spawn(model=model)
    pinned = PinnedConfiguration(1, configuration, {})
    return spawn_command(request, SYSTEM, pinned, RandomIdentities(), "here")


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ("anthropic/claude", "anthropic/claude"),
        ("  anthropic/claude ", "anthropic/claude"),
        ("opus", "opus"),
        ("my claude", "anthropic/claude"),
        (" My CLAUDE\t", "anthropic/claude"),
        ("/x", "/x"),
        ("@cf/meta/llama", "@cf/meta/llama"),
        ("_own", "_own"),
        (None, None),
    ],
)
def test_a_name_is_kept_and_an_alias_of_another_form_is_what_it_stands_for(
    asked: str | None, kept: str | None
) -> None:
    command = command_for(asked)
    assert (command.options.model, command.model_argument) == (kept, None)


@pytest.mark.parametrize("text", ["the good one, please", "My Claude!", "-x", "/"])
def test_free_text_is_kept_beside_the_log(text: str) -> None:
    command = command_for(text)
    assert (command.options.model, command.model_argument) == (None, text)

"""The rules of a child's plan, explained from the facts that were recorded."""

from typing import Any

import pytest

from domain.run.plan_facts import (
    CredentialFacts,
    ModelVerdict,
    SandboxFacts,
    ThinkingFacts,
    TimeoutFacts,
    WorkspaceFacts,
)
from tests.support.builders.explained_spawns import (
    ADMITTED,
    INHERITED,
    MODELS,
    SANDBOX,
    of_the_plan,
    plan_facts,
    refused_by,
    the,
)
from tests.support.builders.facts import fact_of
from tests.support.builders.run_histories import created, overridden, refused, resolved
from tests.support.builders.storytelling import ref, requested


def test_an_agent_is_configured_or_is_not() -> None:
    assert of_the_plan("agent_unknown").text == 'agent "main" is configured'
    one = refused_by("agent_unknown", agent_configured=False)
    assert (one.result, one.text) == ("refused", 'agent "main" is not configured')
    assert one.compared == {"agentId": "main", "requestedAgentId": "main", "configured": False}


def test_an_unknown_agent_that_a_script_named_is_told_with_the_one_it_replaced() -> None:
    events = requested(), ADMITTED, resolved(), overridden(), refused(rule="agent_unknown")
    one = the("agent_unknown", *events)
    assert one.text == 'agent "steward", named in place of "main", is not configured'


SANDBOXES: list[tuple[dict[str, Any], bool, str]] = [
    ({}, False, '"off" puts the child into no sandbox, and none is asked for'),
    (
        {"mode": "all", "child_sandboxed": True, "runtime_provides": True},
        False,
        '"all" puts the child into a sandbox, and its runtime provides one',
    ),
    (
        {"requester_sandboxed": True},
        True,
        '"off" puts the child into no sandbox, but the requester is in one',
    ),
    (
        {"required": True},
        True,
        '"off" puts the child into no sandbox, but the request requires one',
    ),
    (
        {"mode": "non-main", "child_sandboxed": True},
        True,
        '"non-main" puts the child into a sandbox, and its runtime does not say that it provides'
        " one",
    ),
]


@pytest.mark.parametrize(("changes", "refuses", "text"), SANDBOXES)
def test_a_sandbox_tells_what_was_compared(
    changes: dict[str, Any], refuses: bool, text: str
) -> None:
    sandbox = fact_of(SandboxFacts, {**SANDBOX, **changes})
    one = (refused_by if refuses else of_the_plan)("sandbox", sandbox=sandbox)
    assert one.text == f"sandbox.mode {text}"
    assert one.compared == sandbox.members()
    assert one.result == ("refused" if refuses else "passed")


def test_a_model_tells_each_place_and_the_one_that_was_taken() -> None:
    one = of_the_plan("model", plan={"model_applied": False})
    assert one.text == '"large/two", named by the agent\'s subagents, is taken; 1 skipped'
    assert one.compared == {
        "candidates": [verdict.members() for verdict in MODELS],
        "servedModels": ["large/*"],
        "chosen": "large/two",
        "applied": False,
    }


@pytest.mark.parametrize(
    ("models", "text"),
    [
        ((), "no model is named, so the runtime chooses"),
        (
            (ModelVerdict(source="argument", reference=None, verdict="no_name"),),
            "no model that is named can be taken, so the runtime chooses; 1 skipped",
        ),
    ],
)
def test_without_a_model_that_can_be_taken_the_runtime_chooses(
    models: tuple[ModelVerdict, ...], text: str
) -> None:
    one = of_the_plan("model", models=models, served_models=None, plan={"model_applied": None})
    assert one.text == text
    assert one.compared is not None
    assert (one.compared["chosen"], one.compared["applied"]) == (None, None)


def test_thinking_tells_each_place_and_the_level() -> None:
    one = of_the_plan("thinking", plan={"thinking": "low"})
    assert one.text == 'level "low" of agents.defaults.subagents is taken'
    assert one.compared == {**INHERITED.members(), "level": "low"}
    one = of_the_plan("thinking", thinking=ThinkingFacts())
    assert one.text == "no thinking level is named, so the runtime chooses"


def test_a_word_that_is_no_level_is_told_by_its_place_and_not_shown() -> None:
    one = refused_by("thinking", thinking=ThinkingFacts(taken_from="argument"))
    assert (one.result, one.text) == (
        "refused",
        "the word given by the request is no thinking level",
    )
    assert one.compared is not None
    assert (one.compared["argument"], one.compared["level"]) == (None, None)


@pytest.mark.parametrize(
    ("argument", "seconds", "source", "text"),
    [
        (None, 600, "defaults", "600 s: the request asks for none, and 600 s is configured"),
        (90.5, 90, "argument", "90 s: the request asks for 90.5 s, and 600 s is configured"),
        (90.0, 90, "argument", "90 s: the request asks for 90 s, and 600 s is configured"),
        (0.0, 0, "argument", "no limit: the request asks for no limit, and 600 s is configured"),
    ],
)
def test_a_timeout_tells_what_was_asked_for_and_what_is_configured(
    argument: float | None, seconds: int, source: str, text: str
) -> None:
    one = of_the_plan(
        "run_timeout",
        run_timeout=TimeoutFacts(argument=argument, configured=600),
        plan={"run_timeout_seconds": seconds, "run_timeout_source": source},
    )
    assert one.text == text
    assert one.compared == {
        "argument": argument,
        "configured": 600,
        "seconds": seconds,
        "source": source,
    }


@pytest.mark.parametrize(
    ("profile_ids", "given", "text"),
    [
        ((), (), "there are no profiles for the agent's runtime"),
        (("a:default",), ("a:default",), 'the child is given "a:default"'),
        (("a:default", "b:c"), ("b:c",), 'the child is given "b:c"'),
        (("a:default",), (), 'found: "a:default"; the child is given none of it'),
    ],
)
def test_credentials_tell_the_ids_of_profiles(
    profile_ids: tuple[str, ...], given: tuple[str, ...], text: str
) -> None:
    credentials = CredentialFacts(profile_ids=profile_ids)
    one = of_the_plan("credentials", credentials=credentials, plan={"auth_profiles": given})
    assert (one.result, one.text) == ("passed", text)
    assert one.compared == {"profileIds": [*profile_ids], "given": [*given], "missing": []}


def test_credentials_that_cannot_be_had_are_told_by_name() -> None:
    names = tuple(f"KEY_{number}" for number in range(12))
    credentials = CredentialFacts(profile_ids=("a:default",), missing=names)
    one = refused_by("credentials", credentials=credentials)
    assert (one.result, one.position) == ("refused", 13)
    assert one.text.startswith('not to be had: "KEY_0", "KEY_1", ')
    assert one.text.endswith('"KEY_9" and 2 more')
    assert one.compared == {"profileIds": ["a:default"], "given": None, "missing": [*names]}


def test_what_was_found_is_told_of_a_child_that_was_refused_for_something_else() -> None:
    event = refused(rule="workspace", facts=plan_facts())
    one = the("credentials", requested(), ADMITTED, resolved(), event)
    assert (one.result, one.text) == ("passed", 'found: "anthropic:default", "openai:default"')


def test_a_runtime_is_served_or_is_not() -> None:
    assert of_the_plan("runtime").text == 'the agent\'s runtime is "scripted"'
    one = refused_by("runtime", runtime="worker")
    assert one.text == 'the agent\'s runtime is "worker", which is not served'
    assert (one.result, one.compared) == ("refused", {"type": "worker"})
    assert refused_by("runtime", runtime=None).text == "the agent has no runtime"


def test_a_workspace_tells_whose_folder_it_is() -> None:
    one = of_the_plan("workspace")
    assert one.text == "the folder of the agent is used"
    chosen = {"source": "agent", "recorded": None, "chosen": "/srv/main"}
    assert one.compared == {**chosen, "given": False, "workspaceRoots": None, "made": False}
    folder = WorkspaceFacts(source="requester", recorded="/srv/x")
    one = refused_by("workspace", workspace=folder)
    assert (one.result, one.text) == ("refused", "the folder of the requester cannot be used")


def test_a_folder_that_was_asked_for_is_told_to_have_been() -> None:
    request = requested(workspace_argument=ref("/srv/asked"))
    one = the("workspace", request, ADMITTED, resolved(), created(facts=plan_facts()))
    assert one.compared is not None
    assert one.compared["given"] is True
    assert "/srv/asked" not in one.to_json().decode()

"""The rules of a child's plan, explained from the facts that were recorded."""

from typing import Any

import pytest

from domain.configuration.configuration import Configuration
from domain.run.plan_facts import (
    ModelVerdict,
    SandboxFacts,
    ThinkingFacts,
    TimeoutFacts,
    WorkspaceFacts,
)
from tests.support.explained_spawns import (
    ADMITTED,
    INHERITED,
    MODELS,
    SANDBOX,
    of_the_plan,
    plan_facts,
    refused_by,
    the,
)
from tests.support.run_histories import created, overridden, refused, resolved
from tests.support.storytelling import ref, requested


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
    sandbox = SandboxFacts(**{**SANDBOX, **changes})
    one = (refused_by if refuses else of_the_plan)("sandbox", sandbox=sandbox)
    assert one.text == f"sandbox.mode {text}"
    assert one.compared == sandbox.model_dump()
    assert one.result == ("refused" if refuses else "passed")


def test_a_model_tells_each_place_and_the_one_that_was_taken() -> None:
    one = of_the_plan("model", plan={"model_applied": False})
    assert one.text == '"large/two", named by the agent\'s subagents, is taken; 1 skipped'
    assert one.compared == {
        "candidates": [verdict.model_dump() for verdict in MODELS],
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
    assert one.compared == {**INHERITED.model_dump(), "level": "low"}
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
    assert one.compared == {**chosen, "given": False, "workspaceRoots": None}
    folder = WorkspaceFacts(source="requester", recorded="/srv/x")
    one = refused_by("workspace", workspace=folder)
    assert (one.result, one.text) == ("refused", "the folder of the requester cannot be used")


def test_a_folder_that_was_asked_for_is_told_to_have_been() -> None:
    request = requested(workspace_argument=ref("/srv/asked"))
    one = the("workspace", request, ADMITTED, resolved(), created(facts=plan_facts()))
    assert one.compared is not None
    assert one.compared["given"] is True
    assert "/srv/asked" not in one.model_dump_json()


def configured(**sections: Any) -> Configuration:
    return Configuration.model_validate(sections)


def test_tools_tell_the_lists_that_they_were_made_from_and_where_those_stand() -> None:
    lists = {"alsoAllow": ["read"], "deny": ["exec"]}
    under = configured(tools={"subagents": {"tools": lists}})
    events = requested(), ADMITTED, resolved(), created(facts=plan_facts())
    one = the("tools", *events, configuration=under)
    assert one.compared is not None
    assert one.compared["configured"] == {
        "allow": None,
        "alsoAllow": ["read"],
        "deny": ["exec"],
        "at": "tools.subagents.tools",
    }
    assert one.text == (
        'tools of role "orchestrator", by tools.subagents.tools: every tool, 0 denied'
    )
    one = the("tools", *events, configuration=configured())
    assert one.compared is not None
    nothing = dict.fromkeys(("allow", "alsoAllow", "deny"))
    assert one.compared["configured"] == {**nothing, "at": "built-in"}
    assert one.text == 'tools of role "orchestrator", by the built-in lists: every tool, 0 denied'


def test_a_workspace_tells_the_roots_as_the_file_writes_them() -> None:
    under = configured(spawnlog={"workspaceRoots": ["${HARBOUR}/work", "~/x"]})
    request = requested(workspace_argument=ref("/srv/asked"))
    folder = WorkspaceFacts(source="requester", recorded=None)
    events = request, ADMITTED, resolved()
    gone = refused(rule="workspace", facts=plan_facts(workspace=folder))
    one = the("workspace", *events, gone, configuration=under)
    assert one.compared is not None
    assert one.compared["workspaceRoots"] == ["${HARBOUR}/work", "~/x"]
    assert one.text == (
        'the folder of the requester cannot be used; workspaceRoots: "${HARBOUR}/work", "~/x"'
    )
    one = the("workspace", *events, gone, configuration=configured())
    assert one.text == "the folder of the requester cannot be used; workspaceRoots: none"
    one = the("workspace", *events, created(facts=plan_facts()), configuration=under)
    assert one.text == "the folder of the agent is used"


def test_lists_of_a_revision_that_cannot_be_read_are_not_told() -> None:
    for rule, name in (("tools", "configured"), ("workspace", "workspaceRoots")):
        compared = of_the_plan(rule).compared
        assert compared is not None
        assert compared[name] is None


def test_tools_and_capabilities_are_those_of_the_role() -> None:
    one = of_the_plan("tools", plan={"tools_allow": ("read",), "tools_deny": ("exec", "cron")})
    assert one.text == 'tools of role "orchestrator": 1 allowed, 2 denied'
    assert one.compared == {
        "role": "orchestrator",
        "allow": ["read"],
        "deny": ["exec", "cron"],
        "configured": None,
    }
    assert of_the_plan("tools").text == 'tools of role "orchestrator": every tool, 0 denied'
    one = of_the_plan("capabilities")
    assert one.text == 'depth 1 of at most 2 has role "orchestrator" and control scope "children"'
    assert one.compared is not None
    assert one.compared["maxDepth"] == 2

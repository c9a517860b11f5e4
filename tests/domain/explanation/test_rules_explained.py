"""The rules in the explanation of a spawn."""

from typing import Any, NamedTuple

import pytest
from pydantic import JsonValue

from domain.configuration.configuration import Configuration
from domain.context.preamble import preamble_sizes
from domain.explanation.record import RuleExplanation
from domain.run.events import DependencyMet
from domain.run.facts import BatchFacts, Ingredient
from domain.run.plan_facts import (
    CredentialFacts,
    ModelVerdict,
    PreambleSizes,
    SandboxFacts,
    ThinkingFacts,
    TimeoutFacts,
    WorkspaceFacts,
)
from domain.spawn.stages import RULES, names_of
from domain.values.record import ContentRef
from domain.values.rules import WAITS_FOR, Rule
from tests.support.builders.explained_spawns import (
    ADMITTED,
    INHERITED,
    MODELS,
    REVISION,
    SANDBOX,
    admission,
    of_the_plan,
    plan_facts,
    refused_by,
    results,
    the,
    told,
)
from tests.support.builders.facts import fact_of
from tests.support.builders.run_histories import created, overridden, refused, resolved
from tests.support.builders.storytelling import ref, requested, run_id
from tests.support.builders.waiting_runs import TARGET, dependency

# The rules of admission, explained from the facts that were recorded.

ADMISSION: list[tuple[str, dict[str, Any], bool, dict[str, JsonValue], str]] = [
    (
        "agent_id",
        {"agent_id_argument_given": True, "target_agent_id": "steward"},
        False,
        {"given": True, "targetAgentId": "steward"},
        'agentId "steward" is a valid agent id',
    ),
    (
        "agent_id",
        {"agent_id_argument_given": True, "target_agent_id": None},
        True,
        {"given": True, "targetAgentId": None},
        "the given agentId is not a valid agent id",
    ),
    ("mode", {}, False, {"mode": "run", "thread": False}, 'mode "run" with thread false'),
    (
        "mode",
        {"mode": "session"},
        True,
        {"mode": "session", "thread": False},
        'mode "session" with thread false; it requires a thread',
    ),
    (
        "depth",
        {"max_spawn_depth": 1, "depth_from": "shape"},
        False,
        {"callerDepth": 0, "depthFrom": "shape", "maxSpawnDepth": 1},
        "depth 0 is below maxSpawnDepth 1",
    ),
    (
        "depth",
        {"caller_depth": 1, "max_spawn_depth": 1, "depth_from": "record"},
        True,
        {"callerDepth": 1, "depthFrom": "record", "maxSpawnDepth": 1},
        "depth 1 is not below maxSpawnDepth 1",
    ),
    (
        "active_children",
        {"active_children": 5},
        True,
        {"activeChildren": 5, "maxChildren": 5},
        "5 of 5 children are active, so no place is free",
    ),
    (
        "require_agent_id",
        {},
        False,
        {"requireAgentId": False, "from": None, "given": False},
        "requireAgentId is false",
    ),
    (
        "require_agent_id",
        {"require_agent_id": True, "agent_id_argument_given": True},
        False,
        {"requireAgentId": True, "from": None, "given": True},
        "requireAgentId is true, and an agentId was given",
    ),
    (
        "require_agent_id",
        {"require_agent_id": True, "require_agent_id_from": "defaults"},
        True,
        {"requireAgentId": True, "from": "defaults", "given": False},
        "requireAgentId is true, and an agentId was not given",
    ),
]


@pytest.mark.parametrize(
    ("rule", "changes", "refuses", "compared", "text"),
    ADMISSION,
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_rule_of_admission_tells_what_it_compared(
    rule: str, changes: dict[str, Any], refuses: bool, compared: dict[str, Any], text: str
) -> None:
    explanation = admission(rule, refuses=refuses, **changes)
    assert (explanation.compared, explanation.text) == (compared, text)
    assert explanation.result == ("refused" if refuses else "passed")
    assert (explanation.step, explanation.position) == ("admission", 11 if refuses else 10)
    assert explanation.config_revision == REVISION


@pytest.mark.parametrize(
    ("changes", "allowed", "text"),
    [
        ({}, ["main"], "no agentId was given, and the requester's own agent is always allowed"),
        ({"target_agent_id": "main"}, ["main"], '"main" is among main'),
        ({"target_agent_id": "a", "allow_agents": ("B", "a")}, ["a", "b"], '"a" is among a, b'),
        (
            {"target_agent_id": "a", "allow_agents": ("*",)},
            "*",
            '"a" is allowed, because any agent is',
        ),
    ],
)
def test_allowed_agent_is_explained_with_the_list(
    changes: dict[str, Any], allowed: JsonValue, text: str
) -> None:
    given = "target_agent_id" in changes
    explanation = admission("allow_agents", agent_id_argument_given=given, **changes)
    assert (explanation.result, explanation.text) == ("passed", text)
    assert explanation.compared is not None
    assert explanation.compared["allowed"] == allowed
    assert explanation.compared["given"] is given


@pytest.mark.parametrize(
    ("allow_agents", "allowed", "text"),
    [
        (("worker",), ["worker"], '"steward" is not among worker'),
        ((), [], '"steward" was requested, but no agent is allowed'),
        (None, ["main"], '"steward" is not among main'),
    ],
)
def test_forbidden_agent_is_explained_with_the_list(
    allow_agents: tuple[str, ...] | None, allowed: JsonValue, text: str
) -> None:
    explanation = admission(
        "allow_agents",
        refuses=True,
        agent_id_argument_given=True,
        target_agent_id="steward",
        allow_agents=allow_agents,
        allow_agents_from="agent",
    )
    assert (explanation.result, explanation.text) == ("refused", text)
    assert explanation.compared == {
        "requesterAgentId": "main",
        "targetAgentId": "steward",
        "given": True,
        "allowAgents": None if allow_agents is None else [*allow_agents],
        "from": "agent",
        "allowed": allowed,
    }


# Explanation of a spawn's dependencies.


def test_dependencies_are_explained_if_there_are_any() -> None:
    request = requested(dependencies=(dependency(), dependency(name=str(TARGET), require="ended")))
    found = the(WAITS_FOR.name, request, ADMITTED)
    assert (found.step, found.result, found.position) == ("admission", "passed", 10)
    assert found.text == (
        'it is queued when these runs and all their descendants are done: "scout" (run'
        f" {TARGET}), run {TARGET}, with any outcome"
    )
    assert found.compared is not None
    assert found.compared["ancestors"] == []
    assert WAITS_FOR.name not in results(requested(), ADMITTED)


def test_it_says_where_each_was_met() -> None:
    request = requested(dependencies=(dependency(),))
    found = the(WAITS_FOR.name, request, ADMITTED, DependencyMet(run_id=TARGET, outcome="success"))
    assert found.text.endswith(f'"scout" (run {TARGET}), met at 12')
    assert found.compared is not None
    assert str(found.compared["dependencies"]).endswith("'metAt': 12}]")


def test_batch_is_explained_with_place_and_culprit() -> None:
    members = tuple(run_id(number) for number in (1, 2, 3))
    batch = BatchFacts(batch_id=run_id(9), index=1, run_ids=members)
    request = requested(batch=batch)
    found = the("batch", request, ADMITTED)
    assert (found.step, found.result) == ("admission", "passed")
    assert found.text == f"task 2 of 3 of batch {run_id(9)}"
    inputs = {"culprit": str(run_id(3)), "index": 3, "batchId": str(run_id(9))}
    found = the("batch", request, ADMITTED, refused(rule="batch", step="batch", inputs=inputs))
    assert found.result == "refused"
    assert found.text == f"task 3 of the batch (run {run_id(3)}) could not be prepared"
    assert "batch" not in results(requested(), ADMITTED)


def test_it_is_not_judged_before_its_turn() -> None:
    request = requested(dependencies=(dependency(),))
    assert the(WAITS_FOR.name, request).result == "not_judged"
    found = the(
        WAITS_FOR.name, request, refused(rule="depth", status="forbidden", step="admission")
    )
    assert (found.result, found.text) == ("not_judged", '"depth" refused the spawn before')
    assert results(request, ADMITTED, refused(rule="model"))[WAITS_FOR.name] == "passed"


_DEPENDENCIES = [rule for rule in RULES if rule.name in names_of("dependencies")]


@pytest.mark.parametrize("rule", _DEPENDENCIES, ids=lambda rule: rule.name)
def test_refusal_is_told_once_with_its_reason(rule: Rule) -> None:
    request = requested(dependencies=(dependency(),))
    events = request, refused(rule=rule.name, status="error", step="admission")
    (found,) = [answer for answer in told(*events) if answer.result == "refused"]
    assert (found.rule, found.text, found.position) == (rule.name, rule.when, 11)
    assert WAITS_FOR.name not in results(*events)


# The rules of a child's plan, explained from the facts that were recorded.


class Explained(NamedTuple):
    """A plan rule, its recorded facts, and their explanation."""

    rule: str
    facts: dict[str, Any]
    text: str
    compared: dict[str, Any]
    refuses: bool = False


def timeout(argument: float | None, seconds: int, source: str, text: str) -> Explained:
    """Return the explanation of a requested timeout besides the configured 600 s."""
    result = {"argument": argument, "configured": 600, "seconds": seconds, "source": source}
    facts = {
        "run_timeout": TimeoutFacts(argument=argument, configured=600),
        "plan": {"run_timeout_seconds": seconds, "run_timeout_source": source},
    }
    return Explained("run_timeout", facts, text, result)


def profiles(found: tuple[str, ...], given: tuple[str, ...], text: str) -> Explained:
    """Return the explanation of profiles: those found, and those given to the child."""
    result = {"profileIds": [*found], "given": [*given], "missing": []}
    facts = {"credentials": CredentialFacts(profile_ids=found), "plan": {"auth_profiles": given}}
    return Explained("credentials", facts, text, result)


AGENT = {"agentId": "main", "requestedAgentId": "main"}
NO_NAME = ModelVerdict(source="argument", reference=None, verdict="no_name")
NO_MODEL: dict[str, Any] = {"served_models": None, "plan": {"model_applied": None}}
NOT_CHOSEN = {"servedModels": None, "chosen": None, "applied": None}
KEYS = tuple(f"KEY_{number}" for number in range(12))
TEN_KEYS = ", ".join(f'"{key}"' for key in KEYS[:10])
OWN_FOLDER = {"source": "agent", "recorded": None, "chosen": "/srv/main"}
FOLDER = {"given": False, "workspaceRoots": None}

PLAN: list[Explained] = [
    Explained("agent_unknown", {}, 'agent "main" is configured', {**AGENT, "configured": True}),
    Explained(
        "agent_unknown",
        {"agent_configured": False},
        'agent "main" is not configured',
        {**AGENT, "configured": False},
        refuses=True,
    ),
    Explained(
        "model",
        {"plan": {"model_applied": False}},
        '"large/two" is used, set by the agent\'s subagents; 1 skipped',
        {
            "candidates": [verdict.members() for verdict in MODELS],
            "servedModels": ["large/*"],
            "chosen": "large/two",
            "applied": False,
        },
    ),
    Explained(
        "model",
        {"models": (), **NO_MODEL},
        "no model is set, so the runtime chooses",
        {"candidates": [], **NOT_CHOSEN},
    ),
    Explained(
        "model",
        {"models": (NO_NAME,), **NO_MODEL},
        "none of the models that are set can be used, so the runtime chooses; 1 skipped",
        {"candidates": [NO_NAME.members()], **NOT_CHOSEN},
    ),
    Explained(
        "thinking",
        {"plan": {"thinking": "low"}},
        'level "low" set by agents.defaults.subagents is used',
        {**INHERITED.members(), "level": "low"},
    ),
    Explained(
        "thinking",
        {"thinking": ThinkingFacts()},
        "no thinking level is set, so the runtime chooses",
        {**ThinkingFacts().members(), "level": None},
    ),
    Explained(
        "thinking",
        {"thinking": ThinkingFacts(taken_from="argument")},
        "the value set by the request is not a thinking level",
        {**ThinkingFacts(taken_from="argument").members(), "level": None},
        refuses=True,
    ),
    timeout(None, 600, "defaults", "600 s: the request asks for none, and 600 s is configured"),
    timeout(90.5, 90, "argument", "90 s: the request asks for 90.5 s, and 600 s is configured"),
    timeout(90.0, 90, "argument", "90 s: the request asks for 90 s, and 600 s is configured"),
    timeout(0.0, 0, "argument", "no limit: the request asks for no limit, and 600 s is configured"),
    profiles((), (), "there are no profiles for the agent's runtime"),
    profiles(("a:default",), ("a:default",), 'the child gets "a:default"'),
    profiles(("a:default", "b:c"), ("b:c",), 'the child gets "b:c"'),
    profiles(("a:default",), (), 'found: "a:default"; the child gets none'),
    Explained(
        "credentials",
        {"credentials": CredentialFacts(profile_ids=("a:default",), missing=KEYS)},
        f"unavailable: {TEN_KEYS} and 2 more",
        {"profileIds": ["a:default"], "given": None, "missing": [*KEYS]},
        refuses=True,
    ),
    Explained("runtime", {}, 'the agent\'s runtime is "scripted"', {"type": "scripted"}),
    Explained(
        "runtime",
        {"runtime": "worker"},
        'the agent\'s runtime is "worker", which is not supported',
        {"type": "worker"},
        refuses=True,
    ),
    Explained(
        "runtime", {"runtime": None}, "the agent has no runtime", {"type": None}, refuses=True
    ),
    Explained(
        "workspace", {}, "the folder of the agent is used", {**OWN_FOLDER, **FOLDER, "made": False}
    ),
]


@pytest.mark.parametrize("row", PLAN, ids=lambda row: f"{row.rule}: {row.text}"[:40])
def test_rule_of_the_plan_tells_what_it_compared(row: Explained) -> None:
    explanation = (refused_by if row.refuses else of_the_plan)(row.rule, **{**row.facts})
    assert (explanation.text, explanation.compared) == (row.text, row.compared)
    assert (explanation.result, explanation.position) == (
        "refused" if row.refuses else "passed",
        13,
    )


def test_unknown_override_is_explained_with_the_replaced_agent() -> None:
    events = requested(), ADMITTED, resolved(), overridden(), refused(rule="agent_unknown")
    explanation = the("agent_unknown", *events)
    assert explanation.text == 'agent "steward", named in place of "main", is not configured'


SANDBOXES: list[tuple[dict[str, Any], bool, str]] = [
    ({}, False, '"off" requires no sandbox for the child, and none is requested'),
    (
        {"mode": "all", "child_sandboxed": True, "runtime_provides": True},
        False,
        '"all" requires a sandbox for the child, and its runtime provides one',
    ),
    (
        {"requester_sandboxed": True},
        True,
        '"off" requires no sandbox for the child, but the requester is in a sandbox',
    ),
    (
        {"required": True},
        True,
        '"off" requires no sandbox for the child, but the request requires a sandbox',
    ),
    (
        {"mode": "non-main", "child_sandboxed": True},
        True,
        '"non-main" requires a sandbox for the child, and its runtime does not set providesSandbox',
    ),
]


@pytest.mark.parametrize(("changes", "refuses", "text"), SANDBOXES)
def test_sandbox_tells_what_was_compared(changes: dict[str, Any], refuses: bool, text: str) -> None:
    sandbox = fact_of(SandboxFacts, {**SANDBOX, **changes})
    explanation = (refused_by if refuses else of_the_plan)("sandbox", sandbox=sandbox)
    assert explanation.text == f"sandbox.mode {text}"
    assert explanation.compared == sandbox.members()
    assert explanation.result == ("refused" if refuses else "passed")


# Explanations name the lists and roots of the revision that the decision was made under.


def configured(**sections: Any) -> Configuration:
    return Configuration.model_validate(sections)


def test_tool_policy_is_explained_with_its_lists() -> None:
    lists = {"alsoAllow": ["read"], "deny": ["exec"]}
    under = configured(tools={"subagents": {"tools": lists}})
    events = requested(), ADMITTED, resolved(), created(facts=plan_facts())
    explanation = the("tool_policy", *events, configuration=under)
    assert explanation.compared is not None
    assert explanation.compared["configured"] == {
        "allow": None,
        "alsoAllow": ["read"],
        "deny": ["exec"],
        "at": "tools.subagents.tools",
    }
    assert explanation.text == (
        'tools of role "orchestrator", by tools.subagents.tools: every tool, 0 denied'
    )
    explanation = the("tool_policy", *events, configuration=configured())
    assert explanation.compared is not None
    nothing = dict.fromkeys(("allow", "alsoAllow", "deny"))
    assert explanation.compared["configured"] == {**nothing, "at": "built-in"}
    assert (
        explanation.text
        == 'tools of role "orchestrator", by the built-in lists: every tool, 0 denied'
    )


def test_workspace_tells_the_roots_as_the_file_writes_them() -> None:
    under = configured(spawnlog={"workspaceRoots": ["${HARBOUR}/work", "~/x"]})
    request = requested(workspace_argument=ref("/srv/asked"))
    folder = WorkspaceFacts(source="requester", recorded=None)
    events = request, ADMITTED, resolved()
    gone = refused(rule="workspace", facts=plan_facts(workspace=folder))
    explanation = the("workspace", *events, gone, configuration=under)
    assert explanation.compared is not None
    assert explanation.compared["workspaceRoots"] == ["${HARBOUR}/work", "~/x"]
    assert explanation.text == (
        'the folder of the requester cannot be used; workspaceRoots: "${HARBOUR}/work", "~/x"'
    )
    explanation = the("workspace", *events, gone, configuration=configured())
    assert explanation.text == "the folder of the requester cannot be used; workspaceRoots: none"
    explanation = the("workspace", *events, created(facts=plan_facts()), configuration=under)
    assert explanation.text == "the folder of the agent is used"


def test_tools_and_capabilities_are_those_of_the_role() -> None:
    explanation = of_the_plan(
        "tool_policy", plan={"tools_allow": ("read",), "tools_deny": ("exec", "cron")}
    )
    assert explanation.text == 'tools of role "orchestrator": 1 allowed, 2 denied'
    assert explanation.compared == {
        "role": "orchestrator",
        "allow": ["read"],
        "deny": ["exec", "cron"],
        "configured": None,
    }
    assert of_the_plan("tool_policy").text == 'tools of role "orchestrator": every tool, 0 denied'
    explanation = of_the_plan("capabilities")
    assert (
        explanation.text
        == 'depth 1 of at most 2 has role "orchestrator" and control scope "children"'
    )
    assert explanation.compared is not None
    assert explanation.compared["maxDepth"] == 2


def test_preamble_is_explained_with_both_sizes() -> None:
    def told(
        given: ContentRef | None, sizes: PreambleSizes | None, *, kept: bool
    ) -> RuleExplanation:
        pieces = (ref("kept"),) if kept else ()
        ingredients = tuple(
            Ingredient(source="preamble", position="preamble", content=piece) for piece in pieces
        )
        child = created(facts=plan_facts(), ingredients=ingredients, preamble=sizes)
        return the("preamble", requested(preamble=given), ADMITTED, resolved(), child)

    def sizes(kept: int) -> PreambleSizes:
        return preamble_sizes("a" * 10, kept)

    given = ref("given")
    assert told(None, None, kept=False).text == "no preamble was passed"
    assert told(given, None, kept=False).text.endswith("it was empty")
    assert told(given, None, kept=True).result == "not_recorded"
    whole = told(given, sizes(20), kept=True)
    assert whole.text == ("10 of 10 preamble characters were passed, whole; at most 20")
    assert whole.compared == {
        "givenCharacters": 10,
        "givenBytes": 10,
        "keptCharacters": 10,
        "keptBytes": 10,
        "charactersMax": 20,
    }
    assert told(given, sizes(4), kept=True).text.startswith("4 of 10 preamble characters")
    assert "not at all" in told(given, sizes(0), kept=False).text

"""The rules of admission, explained from the facts that were recorded."""

from typing import Any

import pytest
from pydantic import JsonValue

from tests.support.builders.explained_spawns import REVISION, admission

ADMISSION: list[tuple[str, dict[str, Any], bool, dict[str, JsonValue], str]] = [
    (
        "agent_id",
        {"agent_id_argument_given": True, "target_agent_id": "steward"},
        False,
        {"given": True, "targetAgentId": "steward"},
        'agentId "steward" has the form of an agent id',
    ),
    (
        "agent_id",
        {},
        False,
        {"given": False, "targetAgentId": "main"},
        'no agentId was given, so it is the requester\'s own: "main"',
    ),
    (
        "agent_id",
        {"agent_id_argument_given": True, "target_agent_id": None},
        True,
        {"given": True, "targetAgentId": None},
        "what was given as agentId has not the form of an agent id",
    ),
    (
        "mode",
        {},
        False,
        {"mode": "run", "thread": False},
        'mode "run" with thread false',
    ),
    (
        "mode",
        {"mode": "session"},
        True,
        {"mode": "session", "thread": False},
        'mode "session" with thread false, and it needs a thread',
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
        {"active_children": 2},
        False,
        {"activeChildren": 2, "maxChildren": 5},
        "2 of 5 children are active",
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
def test_a_rule_of_admission_tells_what_it_compared(
    rule: str, changes: dict[str, Any], refuses: bool, compared: dict[str, Any], text: str
) -> None:
    one = admission(rule, refuses=refuses, **changes)
    assert (one.compared, one.text) == (compared, text)
    assert one.result == ("refused" if refuses else "passed")
    assert (one.step, one.position) == ("admission", 11 if refuses else 10)
    assert one.config_revision == REVISION


@pytest.mark.parametrize(
    ("changes", "allowed", "text"),
    [
        ({}, ["main"], "no agentId was given, and the requester's own agent is always allowed"),
        ({"target_agent_id": "main"}, ["main"], '"main" is among main'),
        ({"target_agent_id": "a", "allow_agents": ("B", "a")}, ["a", "b"], '"a" is among a, b'),
        ({"target_agent_id": "a", "allow_agents": ("*",)}, "*", '"a" is allowed, as any agent is'),
    ],
)
def test_an_agent_that_is_allowed_is_told_with_the_list(
    changes: dict[str, Any], allowed: JsonValue, text: str
) -> None:
    given = "target_agent_id" in changes
    one = admission("allow_agents", agent_id_argument_given=given, **changes)
    assert (one.result, one.text) == ("passed", text)
    assert one.compared is not None
    assert one.compared["allowed"] == allowed
    assert one.compared["given"] is given


@pytest.mark.parametrize(
    ("allow_agents", "allowed", "text"),
    [
        (("worker",), ["worker"], '"steward" is not among worker'),
        ((), [], '"steward" was named, and no agent is allowed'),
        (None, ["main"], '"steward" is not among main'),
    ],
)
def test_an_agent_that_is_not_allowed_is_told_with_the_list(
    allow_agents: tuple[str, ...] | None, allowed: JsonValue, text: str
) -> None:
    one = admission(
        "allow_agents",
        refuses=True,
        agent_id_argument_given=True,
        target_agent_id="steward",
        allow_agents=allow_agents,
        allow_agents_from="agent",
    )
    assert (one.result, one.text) == ("refused", text)
    assert one.compared == {
        "requesterAgentId": "main",
        "targetAgentId": "steward",
        "given": True,
        "allowAgents": None if allow_agents is None else [*allow_agents],
        "from": "agent",
        "allowed": allowed,
    }


def test_a_long_list_of_agents_is_cut_in_words_and_whole_beside_them() -> None:
    many = tuple(f"a{number:03d}" for number in range(150))
    one = admission(
        "allow_agents",
        refuses=True,
        agent_id_argument_given=True,
        target_agent_id="steward",
        allow_agents=many,
    )
    assert one.text.endswith("a019, and 130 more")
    assert one.compared is not None
    assert one.compared["allowed"] == [*many]

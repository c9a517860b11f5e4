"""What a context script is told about the spawn."""

import json

import pytest

from domain.context.script_request import (
    ArgumentsTooLong,
    SpawnVariables,
    argument_items,
    argument_pairs,
    json_input,
)

VARIABLES = SpawnVariables(
    target_agent_id="steward",
    task='Review "it"; $(rm -rf /)\nthen stop',
    requester_agent_id="main",
    requester_session_key="agent:main:main",
    cleanup="keep",
    cfg={"agents": {"list": [{"id": "main"}]}},
)
ALL = {
    "agent": "targetAgentId",
    "task": "task",
    "tag": "label",
    "spawner": "requesterAgentId",
    "key": "requesterSessionKey",
    "cleanup": "cleanup",
    "cfg": "cfg",
}


def test_arguments_are_one_item_each_without_quotes() -> None:
    assert argument_items(ALL, VARIABLES) == (
        "agent=steward",
        'task=Review "it"; $(rm -rf /)\nthen stop',
        "tag=",
        "spawner=main",
        "key=agent:main:main",
        "cleanup=keep",
        'cfg={"agents":{"list":[{"id":"main"}]}}',
    )


def test_json_has_the_same_names_and_no_undefined_ones() -> None:
    assert json.loads(json_input(ALL, VARIABLES)) == {
        "agent": "steward",
        "task": VARIABLES.task,
        "spawner": "main",
        "key": "agent:main:main",
        "cleanup": "keep",
        "cfg": {"agents": {"list": [{"id": "main"}]}},
    }


def test_nothing_mapped_is_nothing_told() -> None:
    assert argument_items({}, VARIABLES) == ()
    assert json_input({}, VARIABLES) == "{}"


def test_a_variable_that_does_not_exist_is_undefined() -> None:
    assert argument_pairs({"x": "nothing"}, VARIABLES) == (("x", ""),)
    assert json_input({"x": "nothing"}, VARIABLES) == "{}"


def test_an_argument_can_hold_no_nul() -> None:
    odd = SpawnVariables(target_agent_id="a", task="x\x00y\ud800", requester_agent_id="b")
    assert argument_items({"t": "task"}, odd) == ("t=x\ufffdy\ufffd",)


def test_what_does_not_fit_on_a_command_line_is_refused_with_the_way_out() -> None:
    long = SpawnVariables(target_agent_id="a", task="ü" * 70_000, requester_agent_id="b")
    with pytest.raises(ArgumentsTooLong, match=r'"task".*format "json"'):
        argument_items({"task": "task"}, long)
    fits = SpawnVariables(target_agent_id="a", task="x" * 131_069, requester_agent_id="b")
    assert len(argument_items({"t": "task"}, fits)[0]) == 131_071
    with pytest.raises(ArgumentsTooLong, match="131072 bytes"):
        argument_items({"tt": "task"}, fits)
    wide = SpawnVariables(target_agent_id="a", task="x" * 130_000, requester_agent_id="b")
    with pytest.raises(ArgumentsTooLong, match="in all"):
        argument_items({f"t{number}": "task" for number in range(9)}, wide)

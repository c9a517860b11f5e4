"""What an agent gives to the tool, and what is made of it."""

from typing import Any

import pytest

from domain.spawn.request import SpawnRequest
from infrastructure.inbound.mcp.tools.call import ToolInputError
from infrastructure.inbound.mcp.tools.spawn_arguments import (
    ATTACHMENTS_MAX,
    ToolRefusal,
    ToolSpawn,
    read_tool_arguments,
    with_role,
)

DELIVERY_KEYS = [
    "target",
    "transport",
    "channel",
    "to",
    "threadId",
    "thread_id",
    "replyTo",
    "reply_to",
]


def read(**arguments: Any) -> ToolSpawn:
    """The spawn of a call that gives a task and these."""
    spawn = read_tool_arguments({"task": "look", **arguments})
    assert isinstance(spawn, ToolSpawn)
    return spawn


def thrown(arguments: dict[str, object]) -> str:
    with pytest.raises(ToolInputError) as caught:
        read_tool_arguments(arguments)
    assert str(caught.value) == caught.value.message
    return caught.value.message


@pytest.mark.parametrize("key", DELIVERY_KEYS)
@pytest.mark.parametrize("value", ["x", "", None, 0])
def test_a_key_of_channel_delivery_is_thrown_back_whatever_it_holds(key: str, value: Any) -> None:
    assert thrown({"task": "look", key: value}) == (
        f'sessions_spawn does not support "{key}". Use "message" or "sessions_send" for channel '
        "delivery."
    )


@pytest.mark.parametrize("first", range(len(DELIVERY_KEYS)))
def test_of_several_such_keys_the_first_is_named_and_before_the_task(first: int) -> None:
    given_keys = dict.fromkeys(reversed(DELIVERY_KEYS[first:]), "x")
    assert f'"{DELIVERY_KEYS[first]}"' in thrown({**given_keys})


@pytest.mark.parametrize("task", [None, "", " \n", 5, ["look"], True])
def test_without_a_task_nothing_is_spawned(task: object) -> None:
    assert thrown({"task": task}) == "task required"
    assert thrown({}) == "task required"


@pytest.mark.parametrize("parallel", ["yes", 1, False, None, []])
def test_what_is_not_true_is_no_list_of_tasks(parallel: object) -> None:
    read = read_tool_arguments({"task": "look", "parallel": parallel})
    assert isinstance(read, ToolSpawn)
    assert "parallel" not in read.body("agent:main:main")
    assert thrown({"task": ["look"], "parallel": parallel}) == "task required"


def test_a_task_alone_gives_what_holds_without_a_word() -> None:
    spawn = read(task=" look \n")
    assert spawn == ToolSpawn(members={"task": "look", "attachments": []}, unused=())
    whole = {"requester": {"sessionKey": "main"}, "task": "look"}
    given = SpawnRequest.model_validate(spawn.body("main"))
    assert given == SpawnRequest.model_validate(whole)


@pytest.mark.parametrize("key", ["label", "agentId", "model", "thinking"])
def test_texts_are_trimmed_and_a_blank_one_is_none(key: str) -> None:
    assert read(**{key: " x y "}).members[key] == "x y"
    nothing: list[object] = ["", " \t", None, 7, True, ["x"], {}]
    for value in nothing:
        assert key not in read(**{key: value}).members


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("mode", ("run", "session")),
        ("cleanup", ("keep", "delete")),
        ("sandbox", ("inherit", "require")),
        ("context", ("fork", "isolated")),
    ],
)
def test_an_option_knows_its_words_and_nothing_else(key: str, words: tuple[str, ...]) -> None:
    for word in words:
        assert read(**{key: word}).members[key] == word
        for no_word in (f" {word}", word.upper(), [word]):
            assert key not in read(**{key: no_word}).members
    strangers: list[object] = ["strict", "", None, 1, True]
    for stranger in strangers:
        assert key not in read(**{key: stranger}).members


@pytest.mark.parametrize("key", ["thread", "lightContext", "expectsCompletionMessage"])
def test_only_true_and_false_are_answers(key: str) -> None:
    for answer in (True, False):
        assert read(**{key: answer}).members[key] is answer
    for neither in (1, 0, "true", "yes", None, [1]):
        assert key not in read(**{key: neither}).members


@pytest.mark.parametrize(
    ("arguments", "seconds"),
    [
        ({"runTimeoutSeconds": 30}, 30),
        ({"runTimeoutSeconds": 30.9}, 30.9),
        ({"runTimeoutSeconds": 0}, 0),
        ({"runTimeoutSeconds": -0.5}, -0.5),
        ({"runTimeoutSeconds": -7}, -7),
        ({"timeoutSeconds": 2}, 2),
        ({"runTimeoutSeconds": 5, "timeoutSeconds": 2}, 5),
        ({"runTimeoutSeconds": "5", "timeoutSeconds": 2}, 2),
        ({"runTimeoutSeconds": True, "timeoutSeconds": 2.5}, 2.5),
        ({"runTimeoutSeconds": None, "timeoutSeconds": "2"}, None),
        ({"runTimeoutSeconds": float("inf"), "timeoutSeconds": 2}, 2),
        ({"runTimeoutSeconds": float("inf")}, None),
        ({"runTimeoutSeconds": 10**400}, None),
        ({"timeoutSeconds": False}, None),
    ],
)
def test_time_limit_is_the_number_that_was_given(
    arguments: dict[str, Any], seconds: float | None
) -> None:
    read_seconds = read(**arguments).members.get("runTimeoutSeconds")
    assert (type(read_seconds), read_seconds) == (type(seconds), seconds)


def test_another_runtime_is_answered_with_the_agent_that_was_asked_for() -> None:
    text = (
        'runtime="acp" is unavailable in this session because no ACP runtime backend is loaded. '
        'Enable the acpx plugin or use runtime="subagent".'
    )
    call: dict[str, object] = {"task": "look", "runtime": "acp"}
    assert read_tool_arguments(call) == ToolRefusal("error", text, None)
    assert read_tool_arguments({**call, "agentId": " beta "}) == ToolRefusal("error", text, "beta")
    assert thrown({"runtime": "acp"}) == "task required"
    files = [{"name": "a.txt", "content": "a"}]
    attached = read_tool_arguments({**call, "attachments": files})
    assert isinstance(attached, ToolRefusal)
    assert attached.error.startswith("attachments are currently unsupported for runtime=acp; ")
    assert thrown({**call, "lightContext": True, "context": "fork"}) == (
        "lightContext is only supported for runtime='subagent'."
    )
    assert thrown({**call, "context": "fork"}) == (
        'context="fork" is only supported for runtime="subagent".'
    )


@pytest.mark.parametrize("runtime", ["subagent", "ACP", " acp", "other", None, 1])
def test_what_names_no_other_runtime_is_our_own(runtime: object) -> None:
    assert read(runtime=runtime) == read()


def test_what_has_no_use_here_is_named() -> None:
    spawn = read(cwd="/w", streamTo="parent", resumeSessionId="s", label="l", other=1)
    assert spawn.unused == ("streamTo", "resumeSessionId", "cwd")
    assert read(cwd=" ", streamTo=None, resumeSessionId="").unused == ()
    assert read(streamTo=0, cwd=5).unused == ("streamTo", "cwd")


def test_attachments_are_taken_as_they_are_or_thrown_back() -> None:
    one = {"name": "a.txt", "content": "a"}
    taken = {**one, "encoding": "utf8"}
    assert read(attachments=[one, {}]).members["attachments"] == [taken, {"encoding": "utf8"}]
    assert read(attachments=[]) == read(attachments=None)
    too_many: list[object] = [{}] * (ATTACHMENTS_MAX + 1)
    wrongs: list[object] = ["a.txt", one, [one, "b"], [None], 5, too_many]
    for wrong in wrongs:
        assert thrown({"task": "look", "attachments": wrong}).startswith("attachments must be a ")
    assert len(read(attachments=[{}] * ATTACHMENTS_MAX).members["attachments"]) == ATTACHMENTS_MAX


def test_the_place_of_attachments_is_a_path_inside_an_object() -> None:
    files = [{"name": "a.txt", "content": "a"}]
    hint = read(attachments=files, attachAs={"mountPath": " in "}).members["attachAs"]
    assert hint == {"mountPath": "in"}
    nowhere: list[object] = [{}, {"mountPath": " "}, {"mountPath": 1}, "in", None]
    for value in nowhere:
        assert "attachAs" not in read(attachments=files, attachAs=value).members
    assert "attachAs" not in read(attachAs={"mountPath": "in"}).members


@pytest.mark.parametrize("status", ["error", "forbidden"])
def test_a_refusal_says_which_agent_was_asked_for(status: str) -> None:
    answer = {"status": status, "error": "x"}
    assert with_role(answer, " beta ") == {"status": status, "error": "x", "role": "beta"}
    assert with_role(answer, None) == with_role(answer, " ") == answer
    assert "role" not in answer


def test_another_answer_stays_as_it_is() -> None:
    assert with_role({"status": "accepted"}, "beta") == {"status": "accepted"}
    assert with_role({}, "beta") == {}

"""Lenient reading of a call's arguments, and the spawn that a tool makes of them."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from application.commands.context import CommandContext
from application.log.envelope import Actor
from application.queries.access import Caller
from application.queries.errors import QueryError
from domain.spawn.request import SpawnRequest
from infrastructure.inbound.mcp.tools.arguments import (
    ToolArguments,
    number,
    one_of,
    properties_of,
    read_arguments,
)
from infrastructure.inbound.mcp.tools.call import McpCall, ToolInputError
from infrastructure.inbound.mcp.tools.catalogue import TOOLS, TOOLS_BY_NAME
from infrastructure.inbound.mcp.tools.offered import OfferedTool
from infrastructure.inbound.mcp.tools.spawn_arguments import (
    ATTACHMENTS_MAX,
    ToolRefusal,
    ToolSpawn,
    read_tool_arguments,
    tool_schema,
    with_role,
)
from infrastructure.inbound.mcp.tools.subagents import send_and_wait
from tests.support.tiers import examples

Arguments = dict[str, Any]


class Some(ToolArguments):
    """One argument of each kind."""

    text: str | None = None
    kind: str = one_of(("a", "b"), "a", "A word.")
    is_on: bool = False
    count: int = number(5, 1, 10, "How many.")
    seconds: float = number(1, 0, 2.5, "How long.")
    free: float = 0
    after: int | None = Field(None, ge=0)
    names: list[str] = Field([], max_length=2)
    more_names: list[str] = Field([])


PROPERTIES = properties_of(Some)


def test_schema_has_neither_titles_nor_defaults_nor_nulls() -> None:
    assert PROPERTIES["text"] == {"type": "string"}
    assert PROPERTIES["kind"] == {"type": "string", "description": "A word.", "enum": ["a", "b"]}
    assert PROPERTIES["isOn"] == {"type": "boolean"}
    assert PROPERTIES["after"] == {"type": "integer", "minimum": 0}
    names = {"type": "array", "items": {"type": "string"}, "maxItems": 2}
    assert PROPERTIES["names"] == names


UNUSABLE: dict[str, list[Any]] = {
    "text": [" ", 5],
    "isOn": ["yes", False],
    "count": [True, "7"],
    "seconds": [None],
    "after": [1.0, -1, 2**62, True],
    "is_on": [True],
    "unknown": [1],
}


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"text": " x "}, {"text": "x"}),
        ({"kind": "neither"}, {"kind": "neither"}),
        ({"isOn": True}, {"isOn": True}),
        ({"count": 7.9}, {"count": 7}),
        ({"count": 0}, {"count": 1}),
        ({"count": 2**64}, {"count": 10}),
        ({"seconds": -1}, {"seconds": 0}),
        ({"seconds": 1e308}, {"seconds": 2.5}),
        ({"free": 1e308}, {"free": 1e308}),
        ({"after": 2**62 - 1}, {"after": 2**62 - 1}),
        ({"names": "one"}, {"names": ["one"]}),
        ({"names": [" one ", "one"]}, {"names": ["one"]}),
        ({"moreNames": ["x"]}, {"moreNames": ["x"]}),
        # Useless values count as left out.
        *(({name: value}, {}) for name, values in UNUSABLE.items() for value in values),
    ],
)
def test_argument_is_read_leniently(arguments: Arguments, found: Arguments) -> None:
    assert read_arguments(PROPERTIES, (), arguments) == found
    Some.model_validate(found)


@pytest.mark.parametrize("names", [5, {}, [1], ["a", "b", "c"]])
def test_list_of_wrong_values_is_refused(names: Any) -> None:
    with pytest.raises(ToolInputError, match="names"):
        read_arguments(PROPERTIES, (), {"names": names})


@pytest.mark.parametrize("text", [None, "", 5])
def test_call_without_required_argument_is_refused(text: Any) -> None:
    with pytest.raises(ToolInputError, match="text required"):
        read_arguments(PROPERTIES, ("text",), {"text": text})


# Unknown names.


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_tool_refuses_unknown_argument(tool: OfferedTool) -> None:
    shown = tool.input_schema(threads=True)["properties"]
    tool.require_known(dict.fromkeys((*shown, *tool.also_read), None))
    known = f"It takes {', '.join(shown)}." if shown else "It takes none."
    for name in ("x" * 7, "x\n\x1b[2J\u202e", "x" * 10_000, "\ud800"):
        with pytest.raises(ToolInputError) as refused:
            tool.require_known({**dict.fromkeys(shown, "x"), name: None})
        message = refused.value.message
        assert message.startswith(f'{tool.name}: unknown argument "')
        assert message.endswith(f'". {known}')
        assert message.isprintable() or name == "\ud800"
        assert len(message) < 1000


@pytest.mark.parametrize(
    ("tool", "name", "meant"),
    [
        ("sessions_spawn", "agent", "agentId"),
        ("sessions_spawn", "agent_id", "agentId"),
        ("sessions_spawn", "run_timeout_seconds", "runTimeoutSeconds"),
        ("sessions_spawn", "dependOn", "dependsOn"),
        ("subagents", "targets", "target"),
        ("subagents_wait", "target", "targets"),
        ("sessions_send", "session", "sessionKey"),
        ("runs_explain", "run_id", "runId"),
    ],
)
def test_misspelt_argument_gets_the_nearest_known(tool: str, name: str, meant: str) -> None:
    with pytest.raises(ToolInputError, match=f'"{name}"; did you mean "{meant}"\\? It takes '):
        TOOLS_BY_NAME[tool].require_known({name: "x"})


def test_delivery_key_is_refused_before_unknown_arguments() -> None:
    TOOLS_BY_NAME["sessions_spawn"].require_known({"text": "x", "channel": "x"})
    assert "channel delivery" in refused(task="x", text="x", channel="x")


# Spawns.

DELIVERY_KEYS = (
    "target", "transport", "channel", "to", "threadId", "thread_id", "replyTo", "reply_to",
)  # fmt: skip
FILE = {"name": "a.txt", "content": "a"}
PLAIN = {"task": "look"}


def read(**arguments: Any) -> ToolSpawn:
    spawn = read_tool_arguments({**PLAIN, **arguments})
    assert isinstance(spawn, ToolSpawn)
    return spawn


def refused(**arguments: Any) -> str:
    with pytest.raises(ToolInputError) as caught:
        read_tool_arguments(arguments)
    return caught.value.message


@pytest.mark.parametrize("first", range(len(DELIVERY_KEYS)))
def test_keys_of_channel_delivery_are_refused(first: int) -> None:
    key = DELIVERY_KEYS[first]
    text = f'sessions_spawn does not support "{key}". Use "message" or "sessions_send" for channel '
    for value in ("x", "", None, 0):
        assert refused(**PLAIN, **{key: value}) == f"{text}delivery."
    # The first of several is named, and before the task.
    several = dict.fromkeys(reversed(DELIVERY_KEYS[first:]), "x")
    assert refused(**several).startswith(text)


@pytest.mark.parametrize("task", [None, "", " \n", 5, ["look"], True])
def test_spawn_without_task_is_refused(task: object) -> None:
    assert refused(task=task) == refused() == "task required"


@pytest.mark.parametrize("parallel", ["yes", 1, False, None])
def test_list_of_tasks_needs_parallel_true(parallel: object) -> None:
    assert "parallel" not in read(parallel=parallel).body("agent:main:main")
    assert refused(task=["look"], parallel=parallel) == "task required"


def test_task_alone_is_the_default_request() -> None:
    spawn = read(task=" look \n")
    assert spawn == ToolSpawn(members={"task": "look", "attachments": []}, unused=())
    whole = {"requester": {"sessionKey": "main"}, "task": "look"}
    made = SpawnRequest.model_validate(spawn.body("main"))
    assert made == SpawnRequest.model_validate(whole)


@pytest.mark.parametrize("key", ["label", "agentId", "model", "thinking"])
def test_text_is_trimmed_and_left_out_if_blank(key: str) -> None:
    assert read(**{key: " x y "}).members[key] == "x y"
    blank: list[object] = ["", " \t", None, 7, True, ["x"], {}]
    for value in blank:
        assert key not in read(**{key: value}).members


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("mode", ("run", "session")),
        ("cleanup", ("keep", "delete")),
        ("sandbox", ("inherit", "require")),
        ("context", ("fork", "isolated")),
        ("thread", (True, False)),
        ("lightContext", (True, False)),
        ("expectsCompletionMessage", (True, False)),
    ],
)
def test_option_takes_its_values_alone(key: str, values: tuple[Any, ...]) -> None:
    for value in values:
        assert read(**{key: value}).members[key] == value
    near = [value for word in values if isinstance(word, str) for value in (f" {word}", [word])]
    for unknown in (*near, "strict", "", "true", "RUN", None, 1, 0):
        assert key not in read(**{key: unknown}).members


@pytest.mark.parametrize(
    ("arguments", "seconds"),
    [
        ({"runTimeoutSeconds": 30}, 30),
        ({"runTimeoutSeconds": 30.9}, 30.9),
        ({"runTimeoutSeconds": -0.5}, -0.5),
        ({"timeoutSeconds": 2}, 2),
        ({"runTimeoutSeconds": 5, "timeoutSeconds": 2}, 5),
        ({"runTimeoutSeconds": "5", "timeoutSeconds": 2}, 2),
        ({"runTimeoutSeconds": True, "timeoutSeconds": 2.5}, 2.5),
        ({"runTimeoutSeconds": None, "timeoutSeconds": "2"}, None),
        ({"runTimeoutSeconds": float("inf"), "timeoutSeconds": 2}, 2),
        ({"runTimeoutSeconds": float("inf")}, None),
        ({"runTimeoutSeconds": 10**400}, None),
    ],
)
def test_time_limit_is_the_number_given(arguments: Arguments, seconds: float | None) -> None:
    found = read(**arguments).members.get("runTimeoutSeconds")
    assert (type(found), found) == (type(seconds), seconds)


def test_another_runtime_is_unavailable() -> None:
    text = (
        'runtime="acp" is unavailable in this session because no ACP runtime backend is loaded. '
        'Enable the acpx plugin or use runtime="subagent".'
    )
    call: Arguments = {**PLAIN, "runtime": "acp"}
    assert read_tool_arguments(call) == ToolRefusal("error", text, None)
    assert read_tool_arguments({**call, "agentId": " beta "}) == ToolRefusal("error", text, "beta")
    assert refused(runtime="acp") == "task required"
    attached = read_tool_arguments({**call, "attachments": [FILE]})
    assert isinstance(attached, ToolRefusal)
    assert attached.error.startswith("attachments are currently unsupported for runtime=acp; ")
    for more, key in (
        ({"lightContext": True, "context": "fork"}, "lightContext"),
        ({"context": "fork"}, 'context="fork"'),
    ):
        message = refused(**call, **more).replace("'", '"')
        assert message == f'{key} is only supported for runtime="subagent".'
    for own in ("subagent", "ACP", " acp", "other", None, 1):
        assert read(runtime=own) == read()


def test_unused_arguments_are_named() -> None:
    spawn = read(cwd="/w", streamTo="parent", resumeSessionId="s", label="l", other=1)
    assert spawn.unused == ("streamTo", "resumeSessionId", "cwd")
    assert read(cwd=" ", streamTo=None, resumeSessionId="").unused == ()
    assert read(streamTo=0, cwd=5).unused == ("streamTo", "cwd")


def test_attachments_are_a_short_list_of_objects() -> None:
    taken = {**FILE, "encoding": "utf8"}
    assert read(attachments=[FILE, {}]).members["attachments"] == [taken, {"encoding": "utf8"}]
    assert read(attachments=[]) == read(attachments=None)
    assert len(read(attachments=[{}] * ATTACHMENTS_MAX).members["attachments"]) == ATTACHMENTS_MAX
    wrong: list[object] = ["a.txt", FILE, [FILE, "b"], [None], 5, [{}] * (ATTACHMENTS_MAX + 1)]
    for item in wrong:
        assert refused(**PLAIN, attachments=item).startswith("attachments must be a ")


def test_mount_path_is_for_attachments() -> None:
    place = {"mountPath": " in "}
    hint = read(attachments=[FILE], attachAs=place).members["attachAs"]
    assert hint == {"mountPath": "in"}
    assert "attachAs" not in read(attachAs=place).members
    nowhere: list[object] = [{}, {"mountPath": " "}, {"mountPath": 1}, "in", None]
    for value in nowhere:
        assert "attachAs" not in read(attachments=[FILE], attachAs=value).members


def test_refusal_names_the_agent_asked_for() -> None:
    for status in ("error", "forbidden"):
        answer = {"status": status, "error": "x"}
        assert with_role(answer, " beta ") == {**answer, "role": "beta"}
        assert with_role(answer, None) == with_role(answer, " ") == answer
    for incomplete in ({"status": "accepted"}, {}):
        assert with_role(incomplete, "beta") == incomplete


def properties(*, threads: bool) -> Arguments:
    return cast("Arguments", tool_schema(threads=threads)["properties"])


def test_schema_offers_threads_where_there_are_any() -> None:
    with_threads, without = properties(threads=True), properties(threads=False)
    assert set(with_threads) - set(without) == {"thread"}
    assert with_threads["mode"]["enum"] == ["run", "session"]
    assert without["mode"]["enum"] == ["run"]
    assert without["runtime"]["enum"] == ["subagent"]
    assert not {"resumeSessionId", "streamTo"} & set(with_threads)
    assert "maxLength" not in with_threads["attachments"]["items"]["properties"]["content"]
    for key in ("runTimeoutSeconds", "timeoutSeconds"):
        assert without[key] == {"type": "number", "minimum": 0}


def test_every_offered_argument_is_read() -> None:
    values = {"object": {"mountPath": "in"}, "string": "x", "number": 9, "boolean": True}
    whole: Arguments = {**PLAIN, "attachments": [FILE]}
    plain = read_tool_arguments(whole)
    for key, offered in properties(threads=True).items():
        choices = offered.get("enum") or [values.get(offered.get("type", "string"), [{}])]
        found = [read_tool_arguments({**whole, key: choice}) for choice in choices]
        assert key == "runtime" or any(item != plain for item in found), key


TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["acp", "subagent", "run", "session", "keep", "delete", "require", "fork"]),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.just(10**400) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.one_of(
    st.sampled_from([*properties(threads=True), "streamTo", "resumeSessionId"]),
    st.sampled_from([*properties(threads=True), "to", "channel", "reply_to"]),
    st.text(max_size=6),
)
TASKS = st.one_of(st.text(min_size=1, max_size=20), VALUES)


@pytest.mark.long
@given(st.dictionaries(KEYS, VALUES, max_size=8), TASKS)
@examples(200)
def test_any_call_is_read_or_refused(arguments: Arguments, task: object) -> None:
    try:
        result = read_tool_arguments({**arguments, "task": task})
    except ToolInputError:
        return
    if isinstance(result, ToolRefusal):
        assert (result.status, arguments["runtime"]) == ("error", "acp")
        return
    again = read_tool_arguments({**result.members, **dict.fromkeys(result.unused, "given")})
    assert repr(again) == repr(result), "repr, since NaN in an attachment equals nothing"


async def test_send_refuses_wait_without_read_before_it_sends() -> None:
    async def report(progress: float, message: str) -> None:
        raise AssertionError(message)

    actor = Actor("token", "control")
    call = McpCall(
        services=cast(Any, None),
        caller=Caller(actor=actor, scopes=frozenset({"control"}), patterns=("*",)),
        session_key="agent:main:main",
        arguments={},
        report=report,
        command=CommandContext(),
    )
    with pytest.raises(QueryError, match='lacks the scope "read"'):
        await send_and_wait(call, "x", "x", "hello", 30)

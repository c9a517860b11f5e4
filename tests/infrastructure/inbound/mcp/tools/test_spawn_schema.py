"""The schema that the tool shows, and what any call at all comes to."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrastructure.inbound.mcp.tools.call import ToolInputError
from infrastructure.inbound.mcp.tools.spawn_arguments import (
    ToolRefusal,
    read_tool_arguments,
    tool_schema,
)
from tests.support.tiers import examples

pytestmark = pytest.mark.long


def properties(*, threads: bool) -> dict[str, Any]:
    return cast("dict[str, Any]", tool_schema(threads=threads)["properties"])


def test_the_schema_offers_threads_only_where_there_are_any() -> None:
    with_threads, without = properties(threads=True), properties(threads=False)
    assert set(with_threads) - set(without) == {"thread"}
    assert with_threads["mode"]["enum"] == ["run", "session"]
    assert without["mode"]["enum"] == ["run"]
    assert without["runtime"]["enum"] == ["subagent"]
    assert not {"resumeSessionId", "streamTo"} & set(with_threads)
    assert "maxLength" not in with_threads["attachments"]["items"]["properties"]["content"]


@pytest.mark.parametrize("key", ["runTimeoutSeconds", "timeoutSeconds"])
def test_the_schema_offers_no_negative_time(key: str) -> None:
    assert properties(threads=False)[key] == {"type": "number", "minimum": 0}


def test_what_the_schema_offers_is_read() -> None:
    values = {"object": {"mountPath": "in"}, "string": "x", "number": 9, "boolean": True}
    whole = {"task": "look", "attachments": [{"name": "a.txt", "content": "a"}]}
    plain = read_tool_arguments(whole)
    for key, offered in properties(threads=True).items():
        kind = offered.get("type", "string")
        choices = offered.get("enum") or [values.get(kind, [{}])]
        read_back = [read_tool_arguments({**whole, key: choice}) for choice in choices]
        told_apart = key == "runtime" or any(one != plain for one in read_back)
        assert told_apart, key


NUMBERS = st.one_of(st.integers(), st.floats(), st.just(10**400))
TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["acp", "subagent", "run", "session", "keep", "delete", "require", "fork"]),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.one_of(
    st.sampled_from([*properties(threads=True), "streamTo", "resumeSessionId"]),
    st.sampled_from([*properties(threads=True), "to", "channel", "reply_to"]),
    st.text(max_size=6),
)
TASKS = st.one_of(st.text(min_size=1, max_size=20), VALUES)


@given(st.dictionaries(KEYS, VALUES, max_size=8), TASKS)
@examples(200)
def test_any_call_is_read_answered_or_thrown_back(
    arguments: dict[str, object], task: object
) -> None:
    try:
        told = read_tool_arguments({**arguments, "task": task})
    except ToolInputError:
        return
    if isinstance(told, ToolRefusal):
        assert (told.status, arguments["runtime"]) == ("error", "acp")
        return
    again = read_tool_arguments({**told.members, **dict.fromkeys(told.unused, "given")})
    assert repr(again) == repr(told), "repr, since NaN in an attachment equals nothing"

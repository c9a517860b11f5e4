"""How leniently the arguments of a call are read, by the model that is also their schema."""

from typing import Any

import pytest
from pydantic import Field

from infrastructure.inbound.mcp.tools.arguments import (
    ToolArguments,
    number,
    one_of,
    properties_of,
    read_arguments,
)
from infrastructure.inbound.mcp.tools.call import ToolInputError


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


def read(**arguments: Any) -> dict[str, Any]:
    return read_arguments(PROPERTIES, (), arguments)


def test_schema_has_neither_titles_nor_defaults_nor_nulls() -> None:
    assert PROPERTIES["text"] == {"type": "string"}
    assert PROPERTIES["kind"] == {"type": "string", "description": "A word.", "enum": ["a", "b"]}
    assert PROPERTIES["isOn"] == {"type": "boolean"}
    assert PROPERTIES["after"] == {"type": "integer", "minimum": 0}
    assert PROPERTIES["names"] == {
        "type": "array", "items": {"type": "string"}, "maxItems": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "read_as"),
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
    ],
)
def test_usable_value_is_read(given: dict[str, Any], read_as: dict[str, Any]) -> None:
    assert read(**given) == read_as
    Some.model_validate(read_as)


@pytest.mark.parametrize(
    "given",
    [
        {"text": " "},
        {"text": 5},
        {"isOn": "yes"},
        {"isOn": False},
        {"count": True},
        {"count": "7"},
        {"seconds": None},
        {"after": 1.0},
        {"after": -1},
        {"after": 2**62},
        {"after": True},
        {"is_on": True},
        {"unknown": 1},
    ],
)
def test_unusable_value_counts_as_left_out(given: dict[str, Any]) -> None:
    assert read(**given) == {}


@pytest.mark.parametrize("names", [5, {}, [1], ["a", "b", "c"]])
def test_list_that_is_none_is_refused(names: Any) -> None:
    with pytest.raises(ToolInputError, match="names"):
        read(names=names)


@pytest.mark.parametrize("text", [None, "", 5])
def test_call_without_a_required_argument_is_refused(text: Any) -> None:
    with pytest.raises(ToolInputError, match="text required"):
        read_arguments(PROPERTIES, ("text",), {"text": text})

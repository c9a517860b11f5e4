"""Every reference to a text is found, wherever in an event it stands."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from domain.event_types import EVENT_TYPES
from domain.values.record import ContentRef, Event, Fact
from infrastructure.outbound.log.verify.references import find_references

HISTORIES = Path(__file__).parents[4] / "histories"


def _in_json(value: Any) -> Iterator[str]:
    """The ids of everything that looks like a reference."""
    if isinstance(value, dict):
        if set(value) == {"id", "bytes", "hmac"}:
            yield value["id"]
        for one in value.values():
            yield from _in_json(one)
    elif isinstance(value, list):
        for one in value:
            yield from _in_json(one)


@pytest.mark.parametrize("key", EVENT_TYPES, ids=lambda key: key[0])
def test_the_references_of_every_event_are_found(key: tuple[str, int]) -> None:
    text = (HISTORIES / f"{key[0]}.{key[1]}.json").read_text()
    event = EVENT_TYPES[key].from_json(text)
    assert [str(ref.id) for _, ref in find_references(event)] == list(_in_json(json.loads(text)))


def test_some_events_have_references_in_the_histories() -> None:
    texts = [path.read_text() for path in HISTORIES.iterdir()]
    assert sum(len(list(_in_json(json.loads(text)))) for text in texts) > 15


def test_a_place_where_none_can_be_found_is_no_silent_hole() -> None:
    class Hidden(Event):
        texts: dict[str, ContentRef]

    ref = ContentRef(id=UUID(int=1), bytes=1, hmac="00")
    with pytest.raises(AssertionError, match="cannot be found"):
        list(find_references(Hidden(texts={"a": ref})))


def test_a_place_is_named_by_its_fields() -> None:
    class Inner(Fact):
        text: ContentRef | None = None

    class Outer(Event):
        first: Inner
        rest: tuple[Inner, ...] = ()

    ref = ContentRef(id=UUID(int=1), bytes=1, hmac="00")
    event = Outer(first=Inner(), rest=(Inner(text=ref), Inner(), Inner(text=ref)))
    assert list(find_references(event)) == [("rest.text", ref), ("rest.text", ref)]

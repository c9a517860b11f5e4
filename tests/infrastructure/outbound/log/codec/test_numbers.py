"""Numbers that JSON lacks are refused before anything is stored."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from domain.event_types import EVENT_TYPES
from domain.values.record import Event, FactType
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.codec.numbers import Fields, number_fields

HISTORIES = Path(__file__).parents[4] / "histories"


def paths(fields: Fields) -> Iterator[tuple[str, ...]]:
    for name, inner in fields:
        yield from ((name, *rest) for rest in paths(inner)) if inner else [(name,)]


WITH_NUMBERS = [
    pytest.param(name, event_type, path, id=f"{name}-{'.'.join(path)}")
    for (name, _), event_type in EVENT_TYPES.items()
    for path in paths(number_fields(event_type))
]


def with_number(value: Any, path: tuple[str, ...], number: float) -> Any:
    """Return the same value with this number at a path, as far as there are facts on it."""
    if not path:
        return number
    if isinstance(value, tuple):
        return tuple(with_number(one, path, number) for one in value)
    inner = getattr(value, path[0])
    is_there = inner is not None or len(path) == 1
    return value.changed({path[0]: with_number(inner, path[1:], number)}) if is_there else value


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(("name", "event_type", "path"), WITH_NUMBERS)
def test_number_that_json_lacks_is_refused(
    name: str, event_type: type[Event], path: tuple[str, ...], number: float
) -> None:
    event = event_type.from_json((HISTORIES / f"{name}.1.json").read_bytes())
    mapper, wrong = EventMapper(), with_number(event, path, number)
    assert wrong != event
    with pytest.raises(ValueError, match=f"{name} cannot be recorded: .* no number of JSON"):
        mapper.state(wrong)
    assert mapper.state(with_number(event, path, 0.5))


def test_events_with_numbers_are_found() -> None:
    assert {one.values[0] for one in WITH_NUMBERS} >= {
        "SpawnRequested",
        "SessionCreated",
        "ScriptsResolved",
        "StepBegun",
        "RunEnded",
    }


@pytest.mark.parametrize("kind", [dict[str, float], list[float], tuple[float, int], Any])
def test_number_where_nothing_looks_is_refused(kind: Any) -> None:
    fields = {"__annotations__": {"value": kind}, "__module__": __name__}
    with pytest.raises(TypeError, match="use a tuple"):
        number_fields(FactType("Unseen", (Event,), fields))

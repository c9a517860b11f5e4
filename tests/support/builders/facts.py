"""Facts built from the fields that a test gives."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec.structs import fields

from domain.event_types import EVENT_TYPES
from domain.run.state import Run
from domain.session.state import Session
from domain.values.record import Fact

F = TypeVar("F", bound=Fact)


def fact_of(kind: type[F], members: Mapping[str, Any] | F) -> F:
    """Return a fact with these fields; dictionaries become nested facts.

    The fact is equal after a round trip through JSON.
    """
    if isinstance(members, Fact):
        return members
    made = kind(**{name: _part(kind, name, value) for name, value in members.items()})
    read = kind.from_json(made.to_json())
    assert (read, read.to_json()) == (made, made.to_json())
    return made


def _part(kind: type[Fact], name: str, value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_part(kind, name, item) for item in value)
    found = _facts_at(kind, name) if isinstance(value, dict) else []
    return fact_of(found[0], value) if found else value


@cache
def _facts_at(kind: type[Fact], name: str) -> list[type[Fact]]:
    hint = get_type_hints(kind)[name]
    parts = (hint, *get_args(hint), *(item for part in get_args(hint) for item in get_args(part)))
    return [part for part in parts if isinstance(part, type) and issubclass(part, Fact)]


def recorded_facts() -> list[type[Fact]]:
    """Return all facts that are stored: events, states and the facts in them, by name."""
    found = set[type[Fact]]()
    for kind in (*EVENT_TYPES.values(), Run, Session):
        _add_facts_in(kind, found)
    return sorted(found, key=lambda kind: kind.__name__)


def _add_facts_in(hint: Any, found: set[type[Fact]]) -> None:
    for part in get_args(hint):
        _add_facts_in(part, found)
    if isinstance(hint, type) and issubclass(hint, Fact) and hint not in found:
        found.add(hint)
        for field in fields(hint):
            _add_facts_in(field.type, found)


_VALUES: dict[Any, SearchStrategy[Any]] = {
    str: st.text(max_size=5),
    int: st.integers(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    UUID: st.uuids(),
    datetime: st.datetimes(timezones=st.just(UTC)),
    bool: st.booleans(),
    NoneType: st.none(),
}


@cache
def any_fact(kind: type[F]) -> SearchStrategy[F]:
    """Return a strategy of facts of a kind, with any values that its fields may have."""
    return st.builds(kind, **{field.name: _any_value(field.type) for field in fields(kind)})


def _any_value(hint: Any) -> SearchStrategy[Any]:
    origin, parts = get_origin(hint), get_args(hint)
    if hint in _VALUES:
        return _VALUES[hint]
    if origin is Literal:
        return st.sampled_from(parts)
    if origin is tuple:
        return st.lists(_any_value(parts[0]), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(_any_value(parts[0]), _any_value(parts[1]), max_size=2)
    if origin is Annotated:
        return _any_value(parts[0])
    if origin in (Union, UnionType):
        return st.one_of(*map(_any_value, parts))
    return any_fact(hint)

"""Finds the references to texts in an event, by a plan made once for each type of event."""

from collections.abc import Callable, Iterator
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel

from domain.values.record import ContentRef, Event

FoundReference = tuple[str, ContentRef]
Finder = Callable[[Any, str], Iterator[FoundReference]]


class _ReferenceField(NamedTuple):
    """A field to look into, and how."""

    name: str
    look: Finder


def find_references(event: Event) -> Iterator[FoundReference]:
    """Every reference with the name of the place where it stands: `task`, `receipts.output`."""
    for name, look in _steps(type(event)):
        value = getattr(event, name)
        if value is not None:
            yield from look(value, name)


@cache
def _steps(model: type[BaseModel]) -> tuple[_ReferenceField, ...]:
    """The fields that may hold references; most types of events have none."""
    fields = model.model_fields.items()
    looks = ((name, _finder_for(field.annotation)) for name, field in fields)
    return tuple(_ReferenceField(name, look) for name, look in looks if look is not None)


def _finder_for(annotation: Any) -> Finder | None:
    """How to look into a value of this type; None when no reference can be in it."""
    if annotation is ContentRef:
        return _find_itself
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        steps = _steps(annotation)
        return _finder_in_model(steps) if steps else None
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        looks = [look for look in map(_finder_for, arguments) if look is not None]
        # A field that may be this or that kind of holder would need to be told apart by value.
        assert len(looks) <= 1, f"references in {annotation} cannot be found"
        return looks[0] if looks else None
    if origin is tuple:
        look = _finder_for(arguments[0])
        return _finder_in_items(look) if look is not None else None
    assert not any(map(_finder_for, arguments)), f"references in {annotation} cannot be found"
    return None


def _find_itself(value: Any, name: str) -> Iterator[FoundReference]:
    yield name, value


def _finder_in_model(steps: tuple[_ReferenceField, ...]) -> Finder:
    def look(value: Any, name: str) -> Iterator[FoundReference]:
        for field, into in steps:
            inner = getattr(value, field)
            if inner is not None:
                yield from into(inner, f"{name}.{field}")

    return look


def _finder_in_items(into: Finder) -> Finder:
    def look(value: Any, name: str) -> Iterator[FoundReference]:
        for item in value:
            yield from into(item, name)

    return look

"""Finds the references to texts in an event, by a plan made once for each type of event."""

from collections.abc import Callable, Iterator
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel

from domain.content import ContentRef
from domain.fact import Event

Found = tuple[str, ContentRef]
Look = Callable[[Any, str], Iterator[Found]]


class _Step(NamedTuple):
    """A field to look into, and how."""

    name: str
    look: Look


def references(event: Event) -> Iterator[Found]:
    """Every reference with the name of the place where it stands: `task`, `receipts.output`."""
    for name, look in _steps(type(event)):
        value = getattr(event, name)
        if value is not None:
            yield from look(value, name)


@cache
def _steps(model: type[BaseModel]) -> tuple[_Step, ...]:
    """The fields that may hold references; most types of events have none."""
    fields = model.model_fields.items()
    looks = ((name, _look_into(field.annotation)) for name, field in fields)
    return tuple(_Step(name, look) for name, look in looks if look is not None)


def _look_into(annotation: Any) -> Look | None:
    """How to look into a value of this type; None when no reference can be in it."""
    if annotation is ContentRef:
        return _itself
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        steps = _steps(annotation)
        return _into_model(steps) if steps else None
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        looks = [look for look in map(_look_into, arguments) if look is not None]
        # A field that may be this or that kind of holder would need to be told apart by value.
        assert len(looks) <= 1, f"references in {annotation} cannot be found"
        return looks[0] if looks else None
    if origin is tuple:
        look = _look_into(arguments[0])
        return _into_items(look) if look is not None else None
    assert not any(map(_look_into, arguments)), f"references in {annotation} cannot be found"
    return None


def _itself(value: Any, name: str) -> Iterator[Found]:
    yield name, value


def _into_model(steps: tuple[_Step, ...]) -> Look:
    def look(value: Any, name: str) -> Iterator[Found]:
        for field, into in steps:
            inner = getattr(value, field)
            if inner is not None:
                yield from into(inner, f"{name}.{field}")

    return look


def _into_items(into: Look) -> Look:
    def look(value: Any, name: str) -> Iterator[Found]:
        for item in value:
            yield from into(item, name)

    return look

"""The form of all views: typed values with a fixed order of members in JSON."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack
from copy import copy
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Annotated, Any, Generic, Self, TypeVar, cast

import orjson
from pydantic import BaseModel, ConfigDict, PlainSerializer, create_model
from pydantic.alias_generators import to_camel


class View(BaseModel):
    """An answer, or a part of one: snake_case in Python, camelCase in JSON, members in the order
    of the fields. It is made from what was decided already, so it is frozen."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        from_attributes=True,
    )

    @classmethod
    def from_source(cls, source: object, **values: Any) -> Self:
        """Return the view with these values and, for its other fields, the attributes of `source`
        by the same names. Values that are no views are read by their attributes too."""
        for name in cls.model_fields:
            if name not in values:
                values[name] = getattr(source, name)
        return cls(**values)

    def json_bytes(self) -> bytes:
        """The view as JSON, instants in UTC with `Z`."""
        return orjson.dumps(self, default=_members, option=orjson.OPT_UTC_Z)


def _members(value: Any) -> dict[str, Any]:
    if not isinstance(value, View):
        raise TypeError(f"{type(value).__name__} is no part of a view")
    names, values_of = _layout(type(value))
    return dict(zip(names, values_of(value.__dict__), strict=True))


@cache
def _layout(view: type[View]) -> tuple[tuple[str, ...], Callable[[dict[str, Any]], Sequence[Any]]]:
    """The names of the members in JSON, and what takes their values out of a view's fields."""
    fields = view.model_fields
    names = tuple(one.alias or name for name, one in fields.items())
    if len(fields) == 1:
        (only,) = fields
        return names, lambda values: (values[only],)
    return names, itemgetter(*fields)


RecordedJson = Annotated[
    Any, PlainSerializer(lambda value: orjson.loads(orjson.dumps(value)), return_type=Any)
]
"""A value as it was recorded: JSON text as `orjson.Fragment`, which is not read and written again,
or None."""


V = TypeVar("V", bound=View, covariant=True)
S = TypeVar("S", bound=View)


def selection(*names: str) -> Callable[[type[S]], type[S]]:
    """Return a decorator that makes a view of these of its fields alone, in this order. To a type
    checker it has all of them; one that was left out raises `AttributeError`."""

    def select(declared: type[S]) -> type[S]:
        fields = declared.model_fields
        picked: dict[str, Any] = {
            name: (fields[name].annotation, copy(fields[name])) for name in names
        }
        view = create_model(
            declared.__name__,
            __base__=View,
            __doc__=declared.__doc__,
            __module__=declared.__module__,
            **picked,
        )
        return cast("type[S]", view)

    return select


@dataclass(frozen=True, slots=True)
class Answer(Generic[V]):
    """A view, and the position of the log at which it is true."""

    view: V
    position: int


class Lines(ABC):
    """Views that are given out as they are made. `position` is the one at which they are true;
    whoever asked for them closes `room`, which holds what they take of the server."""

    position: int
    room: AsyncExitStack

    @abstractmethod
    def pages(self) -> AsyncGenerator[Sequence[View]]:
        """Make the views, as many at a time as come at once."""

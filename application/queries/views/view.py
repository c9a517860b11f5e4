"""The form of all views: typed values with a fixed order of members in JSON."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Annotated, Any, Generic, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, PlainSerializer
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
    )

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

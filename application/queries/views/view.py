"""What reads answer: views, selections of their fields, and views that are given out as lines."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack
from copy import copy
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar, cast

import orjson
from pydantic import PlainSerializer, create_model

from application.log.view import View as View

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

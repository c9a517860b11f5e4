"""Answers of reads: views, selections of their fields, and streamed lines."""

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
"""A recorded value: JSON text as `orjson.Fragment`, passed on without parsing, or None."""


V = TypeVar("V", bound=View, covariant=True)
S = TypeVar("S", bound=View)


def selection(*names: str) -> Callable[[type[S]], type[S]]:
    """Return a decorator that reduces a view to these fields, in this order.

    A type checker still sees all fields; reading one that was left out raises `AttributeError`.
    """

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
    """A view, and the log position at which it is true."""

    view: V
    position: int


class Lines(ABC):
    """Views that are streamed as they are made.

    `position` is where they are true. The consumer closes `room`, which holds the server resources
    that they use.
    """

    position: int
    room: AsyncExitStack

    @abstractmethod
    def pages(self) -> AsyncGenerator[Sequence[View]]:
        """Yield the views in batches, as they become available."""

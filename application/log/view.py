"""The form of all answers: typed values with a fixed order of members in JSON."""

from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, Self

import orjson
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class View(BaseModel):
    """An answer, or a part of one: snake_case in Python, camelCase in JSON, members in the order
    of the fields. It is made from what was decided already, so it is frozen."""

    model_config = ConfigDict(
        # When it is first made or read: a start builds no model that nobody asks for.
        defer_build=True,
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

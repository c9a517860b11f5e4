"""Base of all answers: typed values with a fixed order of members in JSON."""

from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, Self

import orjson
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class View(BaseModel):
    """An answer or a part of one.

    Fields are snake_case in Python and camelCase in JSON, in the order of declaration. Views are
    frozen, because they are built from finished decisions.
    """

    model_config = ConfigDict(
        # Models are built on first use, to keep the start of a process fast.
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
        """Return a view of these values, with its other fields read from attributes of `source`.

        Values that are not views are converted from their attributes too.
        """
        for name in cls.model_fields:
            if name not in values:
                values[name] = getattr(source, name)
        return cls(**values)

    def json_bytes(self) -> bytes:
        """Return the view as JSON, with instants in UTC (`Z`)."""
        return orjson.dumps(self, default=_members, option=orjson.OPT_UTC_Z)


def _members(value: Any) -> dict[str, Any]:
    if not isinstance(value, View):
        raise TypeError(f"{type(value).__name__} is no part of a view")
    names, values_of = _layout(type(value))
    return dict(zip(names, values_of(value.__dict__), strict=True))


@cache
def _layout(view: type[View]) -> tuple[tuple[str, ...], Callable[[dict[str, Any]], Sequence[Any]]]:
    """Return the member names in JSON, and a getter of their values."""
    fields = view.model_fields
    names = tuple(info.alias or name for name, info in fields.items())
    if len(fields) == 1:
        (only,) = fields
        return names, lambda values: (values[only],)
    return names, itemgetter(*fields)

"""Columns of the projection tables: their names and PostgreSQL types."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints
from uuid import UUID

from application.projections.projection import Position, Projection

SPAN_COLUMNS = {"from_position": "bigint", "to_position": "bigint"}
"""The last columns of every projection: the position from which a row holds, and the position at
which it ends (exclusive)."""

_TYPES: Mapping[Any, str] = {
    UUID: "uuid",
    str: "text",
    int: "int",
    Position: "bigint",
    datetime: "timestamptz",
}


@cache
def columns_of(projection: Projection[Any, Any]) -> Mapping[str, str]:
    """Return the column types by name, in the order of the row's fields. `state` is a text."""
    hints = get_type_hints(projection.row, include_extras=True)
    return {
        name: "text" if hint is projection.state else _column_type(hint)
        for name, hint in hints.items()
    }


@cache
def encodings_of(projection: Projection[Any, Any]) -> Mapping[str, str]:
    """Return the encodings of the columns: their types, but the state as bytes."""
    return {**columns_of(projection)} | (
        {"state": "utf-8"} if "state" in columns_of(projection) else {}
    )


def _column_type(hint: Any) -> str:
    if hint in _TYPES:
        return _TYPES[hint]
    if get_origin(hint) is Literal:
        return "text"
    # The only other hint is an optional type.
    (only,) = (option for option in get_args(hint) if option is not type(None))
    return _column_type(only)

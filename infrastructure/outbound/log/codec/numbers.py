"""Check for numbers without a JSON form, NaN and infinity, which would be stored as `null`."""

from functools import cache
from math import isfinite
from typing import Any

import msgspec.inspect as types

from domain.values.record import Event

Fields = tuple[tuple[str, "Fields"], ...]
"""Paths to float fields: each field name, with the fields inside it, or none if it is a float."""


def require_finite(event: Event) -> None:
    """Raise ValueError if a number of the event is NaN or infinite."""
    fields = number_fields(type(event))
    if fields and (wrong := _wrong_number(event, fields)):
        raise ValueError(f"{wrong}, which JSON cannot represent")


@cache
def number_fields(event_type: type[Event]) -> Fields:
    """Return the float fields of an event type; most types have none."""
    return _fields_of(types.type_info(event_type)) or ()


def _fields_of(kind: types.Type) -> Fields | None:
    """Return the float fields of a type, or None if it has none."""
    if isinstance(kind, types.FloatType):
        return ()
    if isinstance(kind, types.StructType):
        inner = ((field.name, _fields_of(field.type)) for field in kind.fields)
        return tuple((name, fields) for name, fields in inner if fields is not None) or None
    if isinstance(kind, types.UnionType):
        options = [fields for fields in map(_fields_of, kind.types) if fields is not None]
        return sum(options, ()) if options else None
    if isinstance(kind, types.VarTupleType):
        return _fields_of(kind.item_type)
    if isinstance(kind, types.DictType) and _fields_of(kind.value_type) is None:
        return None
    if isinstance(kind, types.CollectionType | types.TupleType | types.DictType | types.AnyType):
        raise TypeError(f"numbers in a {type(kind).__name__} are not checked: use a tuple")
    return None


def _wrong_number(value: Any, fields: Fields) -> str | None:
    for name, inner in fields:
        held = getattr(value, name, None)
        if held is None:
            continue
        for item in held if type(held) is tuple else (held,):
            if inner:
                if wrong := _wrong_number(item, inner):
                    return f"{name}.{wrong}"
            elif not isfinite(item):
                return f"{name} is {item}"
    return None

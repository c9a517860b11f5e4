"""The searchable fields of runs and sessions, by their paths in views."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin
from uuid import UUID

import orjson
from pydantic import JsonValue

from application.queries.views.run import RUN_READERS, RunView
from application.queries.views.session import SESSION_READERS, SessionView
from application.queries.views.view import View
from domain.values.role import Role

S = TypeVar("S")
Getter = Callable[[S], object]


def _text(value: UUID | datetime | None) -> str | None:
    """Return an id or an instant as a view prints it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return None if value is None else str(value)


def _kinds(annotation: Any) -> frozenset[Any]:
    """Return the types of a value without null; `Literal` stands for an enumeration."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _kinds(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return frozenset().union(*map(_kinds, get_args(annotation)))
    return frozenset({annotation if origin is None else origin} - {NoneType})


def _words(annotation: Any) -> tuple[str, ...] | None:
    if _kinds(annotation) == {bool}:
        return ("true", "false")
    words = [kind for kind in (annotation, *get_args(annotation)) if get_origin(kind) is Literal]
    return get_args(words[0]) if words else None


def _part(read: Getter[S], name: str) -> Getter[S]:
    return lambda state: getattr(part, name) if (part := read(state)) is not None else None


def _printed(read: Getter[S]) -> Getter[S]:
    return lambda state: _text(cast("UUID | datetime | None", read(state)))


def _searched(
    view: type[View], readers: Mapping[str, Getter[S]]
) -> Iterator[tuple[str, Any, Getter[S]]]:
    """Yield path, annotation and getter of each searchable field: a scalar, or an enumeration in a
    part."""
    for name, read in readers.items():
        field = view.model_fields[name]
        path, kinds = field.alias or name, _kinds(field.annotation)
        if kinds & {UUID, datetime}:
            yield path, field.annotation, _printed(read)
        elif kinds <= {str, int, bool, Literal}:
            yield path, field.annotation, read
        for part in kinds:
            if isinstance(part, type) and issubclass(part, View):
                for inner, member in part.model_fields.items():
                    if _words(member.annotation) is not None:
                        yield (
                            f"{path}.{member.alias or inner}",
                            member.annotation,
                            _part(read, inner),
                        )


def _values(view: type[View], readers: Mapping[str, Getter[S]]) -> Mapping[str, tuple[str, ...]]:
    found = ((path, _words(kind)) for path, kind, _ in _searched(view, readers))
    return {path: words for path, words in found if words is not None}


FIELDS_OF_A_RUN = tuple(field.alias or name for name, field in RunView.model_fields.items())
RUN_FIELDS = {path: read for path, _, read in _searched(RunView, RUN_READERS)}
SESSION_FIELDS = {path: read for path, _, read in _searched(SessionView, SESSION_READERS)}
"""Getters of the searchable fields. Texts are not searchable because they may be erased; lists and
parts are compared by a run's history and by a diff instead."""
RUN_VALUES: Mapping[str, tuple[str, ...]] = {
    **_values(RunView, RUN_READERS),
    "role": get_args(Role),
}
SESSION_VALUES = _values(SessionView, SESSION_READERS)
"""The values, besides null, of fields that are enumerations. Rules are left out, because other
releases may have recorded others."""
MAX_CHILDREN = "maxChildren"
"""The only session field that comes from the configuration."""


def field_value(read: Getter[S], state: S | None) -> JsonValue:
    """Return a field of a state; null if there is no state yet."""
    return cast("JsonValue", read(state)) if state is not None else None


def is_value(value: JsonValue, text: str) -> bool:
    """Return True if the text means this value, literally or as JSON."""
    written = orjson.dumps(value).decode()
    return text == written or (isinstance(value, str) and text == value)


def word_of(text: str) -> str:
    """Return the word that a text means, literally or as JSON."""
    try:
        word = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return word if isinstance(word, str) else text

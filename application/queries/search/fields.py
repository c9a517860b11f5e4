"""The fields of a run's or a session's state by which one can search, by the names of their
views."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin
from uuid import UUID

import orjson
from pydantic import JsonValue

from application.queries.views.run import READERS, RunView
from application.queries.views.view import View
from domain.run.state import Run
from domain.session.events import ControlScope, Role
from domain.session.state import Session, SessionStage


def _text(value: UUID | datetime | None) -> str | None:
    """An id or an instant as a view prints it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return None if value is None else str(value)


def _kinds(annotation: Any) -> frozenset[Any]:
    """Return the types of a value without null; a word of several is `Literal`."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _kinds(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return frozenset().union(*map(_kinds, get_args(annotation)))
    return frozenset({annotation if origin is None else origin} - {NoneType})


def _words(annotation: Any) -> tuple[str, ...] | None:
    if _kinds(annotation) == {bool}:
        return ("true", "false")
    words = [one for one in (annotation, *get_args(annotation)) if get_origin(one) is Literal]
    return get_args(words[0]) if words else None


def _part(read: Callable[[Run], Any], name: str) -> Callable[[Run], object]:
    return lambda run: getattr(part, name) if (part := read(run)) is not None else None


def _printed(read: Callable[[Run], Any]) -> Callable[[Run], object]:
    return lambda run: _text(read(run))


def _searched() -> Iterator[tuple[str, Any, Callable[[Run], object]]]:
    """Yield the path, the annotation and a getter of each field that is searched: one value, or a
    word of a part."""
    for name, read in READERS.items():
        field = RunView.model_fields[name]
        path, kinds = field.alias or name, _kinds(field.annotation)
        if kinds & {UUID, datetime}:
            yield path, field.annotation, _printed(read)
        elif kinds <= {str, int, bool, Literal}:
            yield path, field.annotation, read
        for view in kinds:
            if isinstance(view, type) and issubclass(view, View):
                for inner, one in view.model_fields.items():
                    if _words(one.annotation) is not None:
                        of_part = f"{path}.{one.alias or inner}"
                        yield of_part, one.annotation, _part(read, inner)


RUN_FIELDS: Mapping[str, Callable[[Run], object]] = {path: read for path, _, read in _searched()}
"""Paths into the document of a run. Texts may be erased; lists and parts of their own are compared
by the history of a run and by a diff."""
FIELDS_OF_A_RUN = tuple(one.alias or name for name, one in RunView.model_fields.items())
"""All of a run's state."""
OF_ANY_EVENT = frozenset({"version", "contextMode", "archiveAt", "transcriptPath"})
"""Those that other events change too than those that come to a stage."""
SESSION_FIELDS: Mapping[str, Callable[[Session], object]] = {
    "stage": lambda session: session.stage,
    "role": lambda session: session.role,
    "controlScope": lambda session: session.control_scope,
    "runId": lambda session: str(session.run_id) if session.run_id else None,
    "activeChildren": lambda session: session.active_children,
    "preamblePosition": lambda session: session.preamble_position,
}
RUN_VALUES: Mapping[str, tuple[str, ...]] = {
    **{path: words for path, kind, _ in _searched() if (words := _words(kind)) is not None},
    "role": get_args(Role),
}
SESSION_VALUES: Mapping[str, tuple[str, ...]] = {
    "stage": get_args(SessionStage),
    "role": get_args(Role),
    "controlScope": get_args(ControlScope),
}
"""The values that a field can have beside null, where it is one of a few words. Rules are not:
those of other releases may be on record."""
MAX_CHILDREN = "maxChildren"
"""The one field of a session that is the configuration's."""


def run_field(run: Run | None, name: str) -> JsonValue:
    """What the field is; null before there is the run."""
    return cast("JsonValue", RUN_FIELDS[name](run)) if run is not None else None


def session_field(session: Session | None, name: str) -> JsonValue:
    """What the field is; null before there is the session."""
    return cast("JsonValue", SESSION_FIELDS[name](session)) if session is not None else None


def is_value(value: JsonValue, text: str) -> bool:
    """Whether a value is the one that a text means: as it stands, or as JSON writes it."""
    written = orjson.dumps(value).decode()
    return text == written or (isinstance(value, str) and text == value)


def word_of(text: str) -> str:
    """The word that a text means: as it stands, or as JSON writes it."""
    try:
        word = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return word if isinstance(word, str) else text

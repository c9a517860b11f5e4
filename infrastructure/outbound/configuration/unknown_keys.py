"""Walks a file's values beside the sections they are read into, and finds the keys that do not
belong there."""

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from domain.configuration.agents import Agents
from domain.configuration.configuration import Configuration
from domain.configuration.problems import pointer_of
from infrastructure.outbound.configuration.known_keys import complaint_about, keys_of

KeyPath = tuple[str | int, ...]
UnknownKey = tuple[str, str, str | None]
"""Pointer, message, nearest key."""

_INCLUDE = "$include"


def unknown_keys(values: Any) -> Iterator[UnknownKey]:
    """Every key that is a mistake: unknown where only spawnlog reads, misspelt elsewhere."""
    yield from _check_section(values, Configuration, ())


def _check_section(values: Any, section: type[BaseModel], path: KeyPath) -> Iterator[UnknownKey]:
    if not isinstance(values, dict):
        return
    known = keys_of(section)
    for key, value in values.items():
        here = (*path, key)
        if key in known:
            yield from _check_value(value, known[key].annotation, here)
        elif key == _INCLUDE:
            message = "is not supported; put the content of the other file here"
            yield pointer_of(here), message, None
        elif section is Agents and key == "entries":
            yield pointer_of(here), "is not read; put the agents into agents.list", None
        elif complaint := complaint_about(key, section):
            yield pointer_of(here), *complaint


def _check_value(value: Any, annotation: Any, path: KeyPath) -> Iterator[UnknownKey]:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _check_value(value, inner[0], path)
    elif origin in (Union, UnionType):
        if chosen := _alternative(value, inner):
            yield from _check_value(value, chosen, path)
    elif origin is tuple and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _check_value(item, inner[0], (*path, index))
    elif origin is dict and isinstance(value, dict):
        for key, item in value.items():
            if key == _INCLUDE:
                message = "is not supported; put the content of the other file here"
                yield pointer_of((*path, key)), message, None
            else:
                yield from _check_value(item, inner[1], (*path, key))
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield from _check_section(value, annotation, path)


def _alternative(value: Any, alternatives: tuple[Any, ...]) -> Any | None:
    """The alternative that a value is read as: by its `type` where there are several sections."""
    candidates = [choice for choice in alternatives if choice is not NoneType]
    if len(candidates) == 1:
        return candidates[0]
    kind = value.get("type") if isinstance(value, dict) else None
    for choice in candidates:
        section = get_args(choice)[0] if get_origin(choice) is Annotated else choice
        field = getattr(section, "model_fields", {}).get("type")
        if field is not None and kind in get_args(field.annotation):
            return section
    return None

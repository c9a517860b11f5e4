"""Find keys of a file that its sections do not have."""

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from domain.configuration.agents import (
    Agent,
    AgentDefaults,
    AgentEntry,
    AgentSubagents,
    Sandbox,
    SubagentDefaults,
)
from domain.configuration.configuration import Configuration
from domain.configuration.model_runtime import ModelRuntime
from domain.configuration.problems import nearest_word, pointer_of
from domain.configuration.runtimes import CommandRuntime
from domain.configuration.session import SessionSection

# Minimum similarity of an unknown key in a shared section to count as a misspelling.
_MISSPELT_MIN = 0.8

# Keys of OpenClaw that look like misspellings of ours.
_FOREIGN_KEYS: dict[type[BaseModel], frozenset[str]] = {
    AgentEntry: frozenset({"models"}),
    Agent: frozenset({"models"}),
    SessionSection: frozenset({"dmScope"}),
}

# Keys that belong one level deeper and are often written here.
_NOT_ONLY_IN_SUBAGENTS = frozenset({"model", "maxConcurrent", "thinking"})
_OF_ALL_AGENTS = "applies to all agents; move it to agents.defaults.subagents"
_OF_A_RUNTIME = CommandRuntime.model_fields["provides_sandbox"].alias


def keys_of(section: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the keys of a section as a file spells them, with their fields."""
    return {field.alias or name: field for name, field in section.model_fields.items()}


def is_open(section: type[BaseModel]) -> bool:
    """Return True if other programs may have keys of their own in the section."""
    return section.model_config.get("extra") == "allow" and section is not ModelRuntime


def complaint_about(key: str, section: type[BaseModel]) -> tuple[str, str | None] | None:
    """Return the error message for a key that the section does not have.

    Returns:
        A message and the nearest known key; None if the key belongs to another program.
    """
    if section is AgentEntry and key == "id":
        return "remove it; the key of the entry is the agent's id", None
    if section in (Agent, AgentEntry, AgentDefaults) and _belongs_in_subagents(key):
        if section is not AgentDefaults and key not in keys_of(AgentSubagents):
            return _OF_ALL_AGENTS, None
        return 'belongs in "subagents"', None
    if section in (Agent, AgentEntry, AgentDefaults, Sandbox) and key == _OF_A_RUNTIME:
        return 'belongs in "runtime"', None
    if section is AgentSubagents and key in keys_of(SubagentDefaults):
        return _OF_ALL_AGENTS, None
    if not is_open(section):
        return "unknown key", nearest_word(key, keys_of(section))
    if key in _FOREIGN_KEYS.get(section, ()):
        return None
    meant = nearest_word(key, keys_of(section), _MISSPELT_MIN)
    return None if meant is None else ("unknown key", meant)


def _belongs_in_subagents(key: str) -> bool:
    ours = key in keys_of(SubagentDefaults) or key in keys_of(AgentSubagents)
    return ours and key not in _NOT_ONLY_IN_SUBAGENTS


KeyPath = tuple[str | int, ...]
UnknownKey = tuple[str, str, str | None]
"""Pointer, message, nearest known key."""


_INCLUDE = "$include"


def unknown_keys(values: Any) -> Iterator[UnknownKey]:
    """Yield every wrong key.

    In sections of spawnlog alone each unknown key is wrong. In sections shared with other programs
    only misspellings and misplaced keys are.
    """
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
        for key, member in value.items():
            if key == _INCLUDE:
                message = "is not supported; put the content of the other file here"
                yield pointer_of((*path, key)), message, None
            else:
                yield from _check_value(member, inner[1], (*path, key))
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield from _check_section(value, annotation, path)


def _alternative(value: Any, alternatives: tuple[Any, ...]) -> Any | None:
    """Return the type that a value is read as; by its `type` if there are several."""
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

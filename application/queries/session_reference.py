"""Sessions as callers name them: a key in any spelling, an id, or `current`."""

import re
from typing import NamedTuple

from application.queries.access import Caller, require_session_access
from application.queries.configuration import configuration_in_force
from application.queries.errors import QueryError, invalid_value
from application.queries.services import QueryServices
from domain.configuration.configuration import Configuration
from domain.values.session_key import InvalidSessionKey, render_session_key, shape_of
from domain.values.text import quote_name

CURRENT = "current"
"""Stands for the one session that the caller acts for."""


_NO_CURRENT = "current stands for the session of a token that acts for one; give the session's key"
UUID_TEXT = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
KEY_POINTER = "/path/key"


async def resolve_session_key(
    services: QueryServices,
    caller: Caller,
    spelling: str,
    *,
    pointer: str = KEY_POINTER,
    at: int | None = None,
) -> str:
    """The canonical key of the session that is meant: by its id, as `current`, or by any spelling
    of its key, as it was understood at position `at`; without one as it is by whoever records
    something now. `QueryError` with `pointer` for what means none."""
    named = await resolve_session_reference(services, caller, spelling, pointer, at=at)
    if named is not None:
        return named
    if at is None:
        return canonical_key(
            spelling, services.work.configurations.current().configuration, pointer
        )
    # A key that names its agent is the same under every configuration.
    shape = shape_of(spelling)
    configuration = await configuration_in_force(services.work, at) if shape != "agent" else None
    if configuration is None and shape == "legacy_or_alias":
        raise QueryError(
            "not_found",
            "which session that was cannot be told: the configuration that was in force is not on"
            " record; give the whole key, as in agent:<agentId>:<session>",
            position=at,
        )
    return canonical_key(spelling, configuration or Configuration(), pointer)


async def resolve_root(
    services: QueryServices, caller: Caller, spelling: str, *, at: int, must_exist: bool = False
) -> str:
    """The canonical key of the root session whose tree is meant, as it was understood at position
    `at`. `QueryError` for a session that was spawned itself: a tree is everything below its root.
    With `must_exist` also for one that the caller does not cover, or that was not on record."""
    key = await resolve_session_key(services, caller, spelling, pointer="/query/tree", at=at)
    registry = services.work.registry
    session = await registry.session(key, at=at)
    if session is None and must_exist:
        # It may have come behind the end of what is asked about.
        session = await registry.session(key)
    if session is not None and not await services.access.covers_session(caller, key):
        session = None
    if session is not None and session.root_session_key != key:
        raise invalid_value(
            "/query/tree", "is a session that was spawned itself: give the root session of its tree"
        )
    if session is None and must_exist:
        raise unknown_session(spelling, position=at)
    return key


def unknown_session(name: str, *, position: int | None = None) -> QueryError:
    """Return the refusal of a session that the caller may not see, or that is not on record."""
    return QueryError(
        "not_found", f"there is no session {quote_name(name)} on record", position=position
    )


async def resolve_session_reference(
    services: QueryServices,
    caller: Caller,
    spelling: str,
    pointer: str,
    *,
    at: int | None = None,
) -> str | None:
    """The key of the session that `current` or a session id stands for; None for anything else,
    which is the spelling of a key. Only what looks like an id is looked up."""
    parts = [part for part in map(str.strip, spelling.split(":")) if part]
    if len(parts) != 1:
        return None
    word = parts[0].lower()
    if word == CURRENT:
        if caller.only_session is None:
            raise invalid_value(pointer, _NO_CURRENT)
        return caller.only_session
    if not UUID_TEXT.fullmatch(word):
        return None
    session = await services.work.registry.session(word, at=at)
    return session.session_key if session is not None else None


def canonical_key(spelling: str, configuration: Configuration, pointer: str) -> str:
    """The canonical form of a session key; `QueryError` with `pointer` for a text that is none."""
    try:
        return configuration.canonical_key(spelling)
    except InvalidSessionKey as error:
        raise invalid_value(pointer, str(error)) from None


class TargetSession(NamedTuple):
    """Its canonical key, and how it is shown to people."""

    session_key: str
    display_key: str


async def resolve_target_session(
    services: QueryServices, caller: Caller, spelling: str
) -> TargetSession:
    """The session that a path names in any spelling; `QueryError` for what names none, and unless
    the caller acts for it."""
    named = await resolve_session_reference(services, caller, spelling, KEY_POINTER)
    configuration = services.work.configurations.current().configuration
    session_key = named or canonical_key(spelling, configuration, KEY_POINTER)
    require_session_access(caller, session_key)
    naming = configuration.session
    shown = render_session_key(named or spelling, main_key=naming.main_key, scope=naming.scope)
    return TargetSession(session_key, shown)

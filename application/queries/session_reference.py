"""Resolves sessions as callers name them: a key in any spelling, an id, or `current`."""

import re
from typing import NamedTuple
from uuid import UUID

from application.ports.registry import RunQuery
from application.queries.access import Caller, require_session_access
from application.queries.configuration import configuration_in_force
from application.queries.errors import QueryError, invalid_value
from application.queries.services import QueryServices
from domain.configuration.configuration import Configuration
from domain.run.state import Run
from domain.spawn.request import LABEL_CHARS_MAX
from domain.values.session_key import InvalidSessionKeyError, render_session_key, shape_of
from domain.values.text import quote_name

CURRENT = "current"
"""Name of the only session that the caller acts for."""


_NO_CURRENT = "current is only valid for a token that acts for one session; give the session's key"
UUID_TEXT = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
KEY_POINTER = "/path/key"
LABELLED_EXAMINED_MAX = 20
"""Runs with a label that are examined for the text of an error."""


async def resolve_session_key(
    services: QueryServices,
    caller: Caller,
    spelling: str,
    *,
    pointer: str = KEY_POINTER,
    at: int | None = None,
) -> str:
    """Return the canonical key of the session that the caller named.

    Args:
        services: Log and registry to resolve names with.
        caller: Decides which session `current` is.
        spelling: A session id, `current`, or a key in any spelling.
        pointer: JSON pointer of the value, for error messages.
        at: The position as of which the name is resolved; None for the active configuration.

    Raises:
        QueryError: The text names no session, or the configuration in force then is not on record.
    """
    named = await resolve_session_reference(services, caller, spelling, pointer, at=at)
    if named is not None:
        return named
    if at is None:
        return canonical_key(
            spelling, services.work.configurations.current().configuration, pointer
        )
    # A key that names its agent does not depend on the configuration.
    shape = shape_of(spelling)
    configuration = await configuration_in_force(services.work, at) if shape != "agent" else None
    if configuration is None and shape == "legacy_or_alias":
        raise QueryError(
            "not_found",
            "the session name cannot be resolved: the configuration in force then is not on"
            " record; give the whole key, as in agent:<agentId>:<session>",
            position=at,
        )
    return canonical_key(spelling, configuration or Configuration(), pointer)


async def resolve_root(
    services: QueryServices, caller: Caller, spelling: str, *, at: int, is_required: bool = False
) -> str:
    """Return the canonical key of a tree's root session, resolved as of position `at`.

    Raises:
        QueryError: The session was spawned itself, so it is no root. With `is_required`, also if it
            is not on record or the caller does not cover it.
    """
    key = await resolve_session_key(services, caller, spelling, pointer="/query/tree", at=at)
    registry = services.work.registry
    session = await registry.session(key, at=at)
    if session is None and is_required:
        # The session may be newer than the position asked about.
        session = await registry.session(key)
    if session is not None and not await services.access.covers_session(caller, key):
        session = None
    if session is not None and session.root_session_key != key:
        raise invalid_value(
            "/query/tree",
            "is not a root session, because it was spawned itself; give the root"
            " session of its tree",
        )
    if session is None and is_required:
        raise await unknown_session(services, caller, spelling, position=at)
    return key


async def unknown_session(
    services: QueryServices, caller: Caller, name: str, *, position: int | None = None
) -> QueryError:
    """Return the error for a session that is not on record, or that the caller may not see.

    If the name is that of a run, the error names the run's session.
    """
    text = f"there is no session {quote_name(name)} on record"
    named = await run_of_name(services, caller, name, at=position)
    if named is not None:
        of_session = (
            "was refused and has no session"
            if named.run.child_session_key is None
            else f"has the session {named.run.child_session_key}"
        )
        text = f"{text}; it is {named.kind}, which {of_session}"
    return QueryError("not_found", text, position=position)


class NamedRun(NamedTuple):
    """A run found by name. `kind` describes the name: `the label of run <id>` or `the id of a
    run`."""

    run: Run
    kind: str


async def run_of_name(
    services: QueryServices, caller: Caller, name: str, *, at: int | None = None
) -> NamedRun | None:
    """Return the run that the caller may see with this id, or the newest with this label.

    For errors about a name that should name something else. Among several runs with a label, one
    with a session comes first.
    """
    name, registry = name.strip(), services.work.registry
    if UUID_TEXT.fullmatch(name):
        run = await registry.run(UUID(name), at=at)
        is_seen = run is not None and await services.access.covers_run(caller, run)
        return NamedRun(run, "the id of a run") if run is not None and is_seen else None
    if not name or len(name) > LABEL_CHARS_MAX:
        return None
    position = await services.work.log.head() if at is None else at
    labelled = await registry.runs(
        RunQuery.where(label=name), at=position, limit=LABELLED_EXAMINED_MAX
    )
    known: dict[str, bool] = {}
    seen = [run for run in labelled if await services.access.covers_run(caller, run, known)]
    if not seen:
        return None
    run = next((run for run in seen if run.child_session_key is not None), seen[0])
    newest = "newest " if len(seen) > 1 else ""
    return NamedRun(run, f"the label of the {newest}run {run.run_id}")


async def resolve_session_reference(
    services: QueryServices,
    caller: Caller,
    spelling: str,
    pointer: str,
    *,
    at: int | None = None,
) -> str | None:
    """Return the key of the session that `current` or a session id refers to.

    None for any other text, which is a session key. Only a text in the form of an id is looked up.
    """
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
    """Return the canonical form of a session key.

    Raises:
        QueryError: The text is not a session key.
    """
    try:
        return configuration.canonical_key(spelling)
    except InvalidSessionKeyError as error:
        raise invalid_value(pointer, str(error)) from None


class TargetSession(NamedTuple):
    """A session's canonical key and its display form."""

    session_key: str
    display_key: str


async def resolve_target_session(
    services: QueryServices, caller: Caller, spelling: str
) -> TargetSession:
    """Return the session that a path names in any spelling.

    Raises:
        QueryError: The text names no session, or the caller does not act for it.
    """
    named = await resolve_session_reference(services, caller, spelling, KEY_POINTER)
    configuration = services.work.configurations.current().configuration
    session_key = named or canonical_key(spelling, configuration, KEY_POINTER)
    require_session_access(caller, session_key)
    naming = configuration.session
    shown = render_session_key(named or spelling, main_key=naming.main_key, scope=naming.scope)
    return TargetSession(session_key, shown)

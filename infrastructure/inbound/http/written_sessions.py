"""The session that a request writes something about, which may be one that nobody has seen yet."""

from typing import NamedTuple

from application.queries.access import Caller
from domain.values.session_key import render_session_key
from infrastructure.inbound.http.requests.caller import (
    canonical_key,
    require_session_access,
    resolve_session_reference,
)
from infrastructure.inbound.http.requests.services import Services

KEY_POINTER = "/path/key"


class TargetSession(NamedTuple):
    """Its canonical key, and how it is shown to people."""

    session_key: str
    display_key: str


async def resolve_target_session(doors: Services, caller: Caller, spelling: str) -> TargetSession:
    """The session that a path names in any spelling; 422 for what names none, 403 unless the caller
    acts for it."""
    named = await resolve_session_reference(doors, caller, spelling, KEY_POINTER)
    configuration = doors.work.configurations.current().configuration
    session_key = named or canonical_key(spelling, configuration, KEY_POINTER)
    require_session_access(caller, session_key)
    naming = configuration.session
    shown = render_session_key(named or spelling, main_key=naming.main_key, scope=naming.scope)
    return TargetSession(session_key, shown)

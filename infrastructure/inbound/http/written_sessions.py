"""The session that a request writes something about, which may be one that nobody has seen yet."""

from typing import NamedTuple

from application.access import Caller
from domain.session_key import display
from infrastructure.inbound.http.doors import Doors
from infrastructure.inbound.http.requests import canonical_key, must_act_for, named_session

KEY = "/path/key"


class WrittenSession(NamedTuple):
    """Its canonical key, and how it is shown to people."""

    session_key: str
    display_key: str


async def written_session(doors: Doors, caller: Caller, spelling: str) -> WrittenSession:
    """The session that a path names in any spelling; 422 for what names none, 403 unless the caller
    acts for it."""
    named = await named_session(doors, caller, spelling, KEY)
    configuration = doors.work.configurations.current().configuration
    session_key = named or canonical_key(spelling, configuration, KEY)
    must_act_for(caller, session_key)
    naming = configuration.session
    shown = display(named or spelling, main_key=naming.main_key, scope=naming.scope)
    return WrittenSession(session_key, shown)

"""Sessions: one row per state of a session."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from domain.session.state import Session

VERSION = 4
"""Raised when the rows change for the same events; the projection is then made anew."""


class SessionRow(NamedTuple):
    """A state of a session."""

    session_key: str
    version: int
    created_position: int
    created_at: datetime
    session_id: UUID
    root: str
    run_id: UUID | None
    state: Session


class SessionFinding(NamedTuple):
    """The columns that are not fields of the state under the same name."""

    root: str


def session_finding(session: Session) -> SessionFinding:
    """What is looked for of a state and not said by it in these words."""
    return SessionFinding(session.root_session_key)


def session_row(session: Session) -> SessionRow:
    """The row of a state."""
    return SessionRow(
        session_key=session.session_key,
        version=session.version,
        created_position=session.created_position,
        created_at=session.created_at,
        session_id=session.session_id,
        root=session.root_session_key,
        run_id=session.run_id,
        state=session,
    )

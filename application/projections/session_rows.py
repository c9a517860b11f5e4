"""Sessions: one row per state."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from application.projections.projection import Position, Projection
from domain.session.state import Session


class SessionRow(NamedTuple):
    session_key: str
    version: int
    created_position: Position
    created_at: datetime
    session_id: UUID
    root: str
    run_id: UUID | None
    state: Session


def session_row(session: Session) -> SessionRow:
    """Return the row of a state."""
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


SESSIONS = Projection("sessions", "session", 2, Session, SessionRow, session_row)

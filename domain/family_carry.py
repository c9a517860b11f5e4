"""What is so after changes that are decided and not recorded yet, for what is decided next.

Stamps are provisional here: positions and times are given when the whole is recorded.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import cast

from domain.event_types import AnyEvent
from domain.run.events import RunEvent
from domain.run.evolve import evolve as evolve_run
from domain.session.events import SessionEvent
from domain.session.state import Session
from domain.session.state import evolve as evolve_session
from domain.spawn.cascade import CascadeState
from domain.stamp import Stamp
from domain.stream import run_id_of, session_key_of


def speculative_state(
    family: CascadeState, changes: Iterable[tuple[str, AnyEvent]], at: datetime
) -> CascadeState:
    """The family after changes to runs that are on record, and to any sessions. `at` stands for
    when sessions are seen first."""
    runs, sessions = dict(family.runs), dict(family.sessions)
    for stream, event in changes:
        run_id, key = run_id_of(stream), session_key_of(stream)
        if run_id is not None:
            run = runs[run_id]
            stamp = Stamp(run.created_position, run.version + 1, run.created_at)
            runs[run_id] = evolve_run(run, cast("RunEvent", event), stamp)
        elif key is not None:
            sessions[key] = speculative_session(sessions.get(key), cast("SessionEvent", event), at)
    return CascadeState(runs, sessions)


def speculative_session(session: Session | None, event: SessionEvent, at: datetime) -> Session:
    """The session after one more event."""
    if session is None:
        return evolve_session(None, event, Stamp(1, 1, at))
    stamp = Stamp(session.created_position, session.version + 1, session.created_at)
    return evolve_session(session, event, stamp)

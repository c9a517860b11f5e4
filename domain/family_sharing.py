"""What a family comes to share when a child is created, and what a child is given."""

from collections.abc import Mapping

from domain.event_types import AnyEvent
from domain.run.commands import CreateSession, StartRun
from domain.run.state import Run
from domain.session.decide import decide
from domain.session.sharing import ChangeSharedContext, InheritSharedContext
from domain.session.state import Session
from domain.stream import session_stream

Changes = list[tuple[str, AnyEvent]]


def added_by_spawn(run: Run, sessions: Mapping[str, Session], command: CreateSession) -> Changes:
    """What the spawn adds to the context of its requester's family."""
    requester = sessions.get(run.requester.session_key)
    if not command.shared or requester is None:
        return []
    change = ChangeSharedContext(command.shared, cause="spawn", run_id=run.run_id)
    stream = session_stream(requester.session_key)
    return [(stream, event) for event in decide(requester, change)]


def inherited(run: Run, sessions: Mapping[str, Session], command: StartRun) -> Changes:
    """What the session of the run starts with, for its own children."""
    assert run.child_session_key is not None
    own = sessions.get(run.child_session_key)
    if own is None or command.shared_context_position is None:
        return []
    inherit = InheritSharedContext(
        run_id=run.run_id,
        from_session=run.requester.session_key,
        at_position=command.shared_context_position,
        keys=command.shared_context,
    )
    stream = session_stream(own.session_key)
    return [(stream, event) for event in decide(own, inherit)]

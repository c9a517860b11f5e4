"""What a family comes to share when a child is created, and what a child is given."""

from collections.abc import Mapping

from domain.event_types import AnyEvent
from domain.run.commands import CreateSession, StartRun
from domain.run.state import Run
from domain.session.decide import decide
from domain.session.shared_context import effective_shared_keys, limit_refusal
from domain.session.sharing import ChangeSharedContext, InheritSharedContext
from domain.session.state import Session
from domain.spawn.admission import Refusal
from domain.stream import session_stream
from domain.values.refusals import Rejected

StreamChanges = list[tuple[str, AnyEvent]]


class CannotShare(Rejected):
    """What the spawn shares has no room beside what was shared since it was admitted."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


def share_from_spawn(
    run: Run, sessions: Mapping[str, Session], command: CreateSession
) -> StreamChanges:
    """What the spawn adds to the context of its requester's family. `CannotShare` when it does not
    fit any more."""
    requester = sessions.get(run.requester.session_key)
    if not command.shared or requester is None:
        return []
    added = [(one.key, one.value.bytes) for one in command.shared if one.value is not None]
    refusal = limit_refusal(effective_shared_keys(requester), added, "family")
    if refusal is not None:
        raise CannotShare(refusal)
    change = ChangeSharedContext(command.shared, cause="spawn", run_id=run.run_id)
    stream = session_stream(requester.session_key)
    return [(stream, event) for event in decide(requester, change)]


def inherit_for_run(run: Run, sessions: Mapping[str, Session], command: StartRun) -> StreamChanges:
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

"""State of a session: the fold of its events.

`evolve` only grows and makes no decisions.
"""

from datetime import datetime
from typing import Literal, assert_never
from uuid import UUID

from domain.session.events import (
    Assertion,
    ChildAdmitted,
    ChildReleased,
    ChildSettled,
    PreambleChanged,
    SessionClosed,
    SessionContinued,
    SessionEvent,
    SessionObserved,
    SharedContextChanged,
    SharedContextInherited,
    ToolRefused,
    TranscriptProvided,
)
from domain.values.record import ContentRef, Fact, Stamp
from domain.values.refusals import CorruptHistoryError
from domain.values.role import ControlScope, Role
from domain.values.shared_values import SharedKey

SessionStage = Literal["unseen", "open", "closed"]

SESSION_LIFECYCLE: dict[SessionStage, dict[type[SessionEvent], SessionStage]] = {
    "unseen": {SessionObserved: "open"},
    "open": {
        ChildAdmitted: "open",
        ChildReleased: "open",
        ChildSettled: "open",
        TranscriptProvided: "open",
        SessionContinued: "open",
        SessionClosed: "closed",
        SharedContextChanged: "open",
        SharedContextInherited: "open",
        PreambleChanged: "open",
        ToolRefused: "open",
    },
    "closed": {
        ChildAdmitted: "closed",
        ChildReleased: "closed",
        ChildSettled: "closed",
        SharedContextChanged: "closed",
        SharedContextInherited: "closed",
        ToolRefused: "closed",
    },
}


REPORTS_MAX = 500


class ProvidedTranscript(Fact):
    """Transcript of a session as provided at a position of the log."""

    entries: int
    tokens: int | None = None
    content: ContentRef
    by: str
    position: int


class Session(Fact):
    """State of one session after some of its events.

    Attributes:
        run_id: The newest run, if the session is a child.
        counted: The runs that hold a place now, in order of admission.
        unsettled: The children that the announcement of the session's own run waits for; kept only
            if the session is itself a child.
        reports: The last 500 children that are done and not yet reported to a run of the session.
        inherited: The shared context that its newest run started with, in order of first write.
        shared: Keys written by its spawns and its owner, in order of first write. A removed key
            stays if it hides an inherited one.
        shared_position: Where either of the two last changed.
        preamble: The preamble of later runs, if it was changed.
        preamble_position: Position of its last change; None for the preamble of the spawn.
    """

    stage: SessionStage
    version: int
    session_id: UUID
    session_key: str
    display_key: str
    agent_id: str
    depth: int
    role: Role
    control_scope: ControlScope
    spawned_by: str | None = None
    root_session_key: str
    run_id: UUID | None = None
    asserted_by: str | None = None
    assertions: tuple[Assertion, ...] = ()
    depth_from: str
    sandboxed: bool
    workspace_dir: str | None = None
    created_position: int
    created_at: datetime
    counted: tuple[UUID, ...] = ()
    unsettled: tuple[UUID, ...] = ()
    reports: tuple[UUID, ...] = ()
    admitted: int = 0
    closed_at: datetime | None = None
    transcript: ProvidedTranscript | None = None
    inherited: tuple[SharedKey, ...] | None = None
    shared: tuple[SharedKey, ...] | None = None
    shared_position: int | None = None
    preamble: ContentRef | None = None
    preamble_position: int | None = None

    @property
    def active_children(self) -> int:
        """Return the number of children that count against the cap."""
        return len(self.counted)


def evolve(session: Session | None, event: SessionEvent, stamp: Stamp) -> Session:
    """Return the session after `event`. Raise `CorruptHistoryError` if its lifecycle forbids it."""
    before: SessionStage = session.stage if session else "unseen"
    stage = SESSION_LIFECYCLE[before].get(type(event))
    if stage is None:
        raise CorruptHistoryError(f"{type(event).__name__} cannot follow stage {before}")
    if session is None:
        assert isinstance(event, SessionObserved)
        return _observe(event, stamp)
    changes = _changes(session, event, stamp)
    changes["stage"] = stage
    changes["version"] = stamp.version
    return session.changed(changes)


def _observe(event: SessionObserved, stamp: Stamp) -> Session:
    return Session(
        stage="open",
        version=stamp.version,
        session_id=event.session_id,
        session_key=event.session_key,
        display_key=event.display_key,
        agent_id=event.agent_id,
        depth=event.depth,
        role=event.role,
        control_scope=event.control_scope,
        spawned_by=event.spawned_by,
        root_session_key=event.root_session_key,
        run_id=event.run_id,
        asserted_by=event.asserted_by,
        assertions=event.assertions,
        depth_from=event.depth_from,
        sandboxed=event.sandboxed,
        workspace_dir=event.workspace_dir,
        created_position=stamp.position,
        created_at=stamp.recorded_at,
    )


def _changes(session: Session, event: SessionEvent, stamp: Stamp) -> dict[str, object]:
    match event:
        case ChildAdmitted():
            changes: dict[str, object] = {
                "counted": (*session.counted, event.run_id),
                "admitted": session.admitted + 1,
            }
            if session.depth > 0:
                changes["unsettled"] = (*session.unsettled, event.run_id)
            return changes
        case ChildReleased():
            return {"counted": _remove_run(session.counted, event.run_id)}
        case ChildSettled():
            changes = {"unsettled": _remove_run(session.unsettled, event.run_id)}
            if event.reports:
                changes["reports"] = (*session.reports, *event.reports)[-REPORTS_MAX:]
            return changes
        case SessionClosed():
            return {"closed_at": stamp.recorded_at}
        case SessionObserved():
            return {}
        case TranscriptProvided():
            transcript = ProvidedTranscript(
                entries=event.entries,
                tokens=event.tokens,
                content=event.content,
                by=event.by,
                position=stamp.position,
            )
            return {"transcript": transcript}
        case SessionContinued():
            return {
                "run_id": event.run_id,
                "role": event.role,
                "control_scope": event.control_scope,
                "reports": tuple(
                    run_id for run_id in session.reports if run_id not in event.settled
                ),
            }
        case SharedContextChanged():
            written = _apply_shared_change(session, event, stamp)
            return {"shared": written or None, "shared_position": stamp.position}
        case SharedContextInherited():
            return {"inherited": event.keys or None, "shared_position": stamp.position}
        case PreambleChanged():
            return {"preamble": event.preamble, "preamble_position": stamp.position}
        case ToolRefused():
            return {}
        case _:
            assert_never(event)


def _apply_shared_change(
    session: Session, event: SharedContextChanged, stamp: Stamp
) -> tuple[SharedKey, ...]:
    """Return the session's own keys after a change.

    A rewritten key keeps its place. A removed key is kept only if it hides an inherited one.
    """
    keys = {shared.key: shared for shared in session.shared or ()}
    hidden = {shared.key for shared in session.inherited or ()}
    for change in event.changes:
        if change.value is None and change.key not in hidden:
            keys.pop(change.key, None)
            continue
        keys[change.key] = SharedKey(
            key=change.key,
            value=change.value,
            session_key=session.session_key,
            position=stamp.position,
            run_id=event.run_id,
            by=event.by,
        )
    return tuple(keys.values())


def _remove_run(runs: tuple[UUID, ...], run_id: UUID) -> tuple[UUID, ...]:
    # Comparing the integers takes a fifth of the time of comparing the UUIDs.
    number = run_id.int
    return tuple(run for run in runs if run.int != number)

"""What is true of a session: the fold of its events. `evolve` only grows; it judges nothing."""

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
from domain.values.refusals import CorruptHistory
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
    """What has been said in a session, as it was told at a position of the log."""

    entries: int
    tokens: int | None = None
    content: ContentRef
    by: str
    position: int


class Session(Fact):
    """The state of one session after some of its events.

    `run_id` is the newest run of a child. `counted` are the runs that hold a place now, in order of
    admission; `unsettled` (kept for children only) those that an announcement of this session's own
    run waits for, and `reports` the last 500 of those that are done and of which no run of it was
    told.

    `inherited` is what its newest run started with of its family's context, `shared` what its own
    spawns and its owner wrote, keys that were taken away included; both in the order in which the
    keys were written first. `shared_position` is where either changed last. `preamble_position` is
    where what stands in front of the prompts of its later runs was written last, `preamble`; None
    where that is what its spawn said.
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
        """How many places are taken."""
        return len(self.counted)


def evolve(session: Session | None, event: SessionEvent, stamp: Stamp) -> Session:
    """The session after `event`. `CorruptHistory` when its lifecycle has no such step."""
    before: SessionStage = session.stage if session else "unseen"
    stage = SESSION_LIFECYCLE[before].get(type(event))
    if stage is None:
        raise CorruptHistory(f"{type(event).__name__} cannot follow stage {before}")
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
                "reports": tuple(one for one in session.reports if one not in event.settled),
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
    """Own keys after a change. What was written before keeps its place; what is taken away is only
    remembered when it hides something."""
    keys = {one.key: one for one in session.shared or ()}
    hidden = {one.key for one in session.inherited or ()}
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
    # To compare the numbers of two ids takes a fifth of what it takes to compare the ids.
    number = run_id.int
    return tuple(run for run in runs if run.int != number)

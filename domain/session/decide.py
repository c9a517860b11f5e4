"""Decide which events a command to a session records."""

from typing import Literal, assert_never
from uuid import UUID

from domain.session.events import (
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
    TranscriptProvided,
)
from domain.session.state import Session
from domain.values.record import Command, ContentRef
from domain.values.refusals import Rejected, SessionIsClosed
from domain.values.role import ControlScope, Role
from domain.values.shared_values import SharedChange, SharedKey

# Shared context.


class ChangeSharedContext(Command, kw_only=False):
    """Write or remove keys of the session's shared context. The values are texts of the session.

    `expected` is the position of the version that a patch was made for; None skips this check.
    """

    changes: tuple[SharedChange, ...]
    cause: Literal["spawn", "patch"]
    run_id: UUID | None = None
    by: str | None = None
    expected: int | None = None


class InheritSharedContext(Command, kw_only=False):
    """Record the shared context that a run of the session starts with."""

    run_id: UUID
    from_session: str
    at_position: int
    keys: tuple[SharedKey, ...]


class ContextMoved(Rejected):
    """The shared context has another version, `current`, than the patch was made for."""

    def __init__(self, current: int) -> None:
        super().__init__(
            f"the shared context is now at version {current}; read it again and retry the patch"
        )
        self.current = current


def share(session: Session, command: ChangeSharedContext) -> tuple[SessionEvent, ...]:
    """Change the shared context; no-op without changes.

    A spawn may add its keys even if the session was closed meanwhile; a patch may not.

    Raises:
        SessionIsClosed: The session is closed, and the change is a patch.
        ContextMoved: The shared context is not at the expected version.
    """
    if command.cause == "patch" and session.stage == "closed":
        raise SessionIsClosed(
            f"session {session.display_key} is closed; its shared context cannot be changed"
        )
    current = session.shared_position or 0
    if command.expected is not None and command.expected != current:
        raise ContextMoved(current)
    if not command.changes:
        return ()
    return (
        SharedContextChanged(
            cause=command.cause, changes=command.changes, run_id=command.run_id, by=command.by
        ),
    )


def inherit(session: Session, command: InheritSharedContext) -> tuple[SessionEvent, ...]:
    """Record the inherited context; no-op if it is empty and none was inherited before."""
    if not command.keys and session.inherited is None:
        return ()
    return (
        SharedContextInherited(
            run_id=command.run_id,
            from_session=command.from_session,
            at_position=command.at_position,
            keys=command.keys,
        ),
    )


class AdmitChild(Command, kw_only=False):
    """Reserve a place for a new child's run, up to the cap `max_children`."""

    run_id: UUID
    max_children: int


class AdmitContinuation(Command, kw_only=False):
    """Reserve a place for a new run of an existing child, or hand over that of the run it
    `replaces`.

    This works for a closed session too, because its children may outlive it.
    """

    run_id: UUID
    max_children: int
    replaces: UUID | None = None


class ContinueSession(Command, kw_only=False):
    """Continue the session with another run; `settled` reports are delivered and removed."""

    run_id: UUID
    role: Role
    control_scope: ControlScope
    settled: tuple[UUID, ...] = ()


class ReleaseChild(Command, kw_only=False):
    """Free the place of a run that is over with all its descendants; no-op if it holds none."""

    run_id: UUID


class SettleChild(Command, kw_only=False):
    """Record that a run is announced or refused; `reports` are the children to report now.

    No-op if the session does not wait for the run.
    """

    run_id: UUID
    reports: tuple[UUID, ...] = ()


class ProvideTranscript(Command, kw_only=False):
    """Store the transcript of a session that was not spawned here, replacing any earlier one.

    `content` is a text of the session.
    """

    entries: int
    tokens: int | None
    content: ContentRef
    by: str


class ChangePreamble(Command, kw_only=False):
    """Replace the preamble of the session's later runs; None removes it."""

    preamble: ContentRef | None
    by: str


class CloseSession(Command, kw_only=False):
    """Close the session; no-op if it is closed."""

    reason: str


SessionCommand = (
    SessionObserved
    | AdmitChild
    | AdmitContinuation
    | ContinueSession
    | ReleaseChild
    | SettleChild
    | ProvideTranscript
    | ChangePreamble
    | CloseSession
    | ChangeSharedContext
    | InheritSharedContext
)


class CapReached(Rejected):
    """All places are taken. The admission rule refuses first; this is the last guard."""


class NotSpawnedHere(Rejected):
    """The session was not spawned here and has no runs."""


class TranscriptStoredHere(Rejected):
    """The session was spawned here, so its transcript is recorded and cannot be provided."""


def decide(session: Session | None, command: SessionCommand) -> tuple[SessionEvent, ...]:
    """Return the events to record for `command`.

    A repeated command is a no-op: observing a known session, releasing a released child, providing
    the same transcript, closing a closed session.

    Raises:
        Rejected: The command does not fit the state of the session.
    """
    if session is None:
        if isinstance(command, SessionObserved):
            return (command,)
        raise Rejected("the session is not on record")
    match command:
        case SessionObserved():
            return ()
        case AdmitChild():
            if session.stage == "closed":
                raise SessionIsClosed(f"session {session.display_key} is closed and cannot spawn")
            return _admit(session, command)
        case AdmitContinuation():
            return _admit_continuation(session, command)
        case ContinueSession():
            return _continue(session, command)
        case ReleaseChild():
            held = command.run_id in session.counted
            return (ChildReleased(run_id=command.run_id),) if held else ()
        case SettleChild():
            waited = command.run_id in session.unsettled
            settled = ChildSettled(run_id=command.run_id, reports=command.reports)
            return (settled,) if waited else ()
        case ProvideTranscript():
            return _provide(session, command)
        case ChangeSharedContext():
            return share(session, command)
        case InheritSharedContext():
            return inherit(session, command)
        case ChangePreamble():
            return _change_preamble(session, command)
        case CloseSession():
            open_ = session.stage == "open"
            return (SessionClosed(reason=command.reason),) if open_ else ()
        case _:
            assert_never(command)


def _admit(session: Session, command: AdmitChild) -> tuple[SessionEvent, ...]:
    if session.active_children >= command.max_children:
        raise CapReached(f"{session.active_children} of {command.max_children} places are taken")
    return (
        ChildAdmitted(
            run_id=command.run_id,
            active_children=session.active_children,
            max_children=command.max_children,
        ),
    )


def _admit_continuation(session: Session, command: AdmitContinuation) -> tuple[SessionEvent, ...]:
    if command.replaces is None:
        return _admit(session, AdmitChild(command.run_id, command.max_children))
    admitted = ChildAdmitted(
        run_id=command.run_id,
        active_children=session.active_children,
        max_children=command.max_children,
    )
    released = ChildReleased(run_id=command.replaces)
    settled = ChildSettled(run_id=command.replaces)
    events: list[SessionEvent] = [admitted]
    if command.replaces in session.counted:
        events.append(released)
    if command.replaces in session.unsettled:
        events.append(settled)
    return tuple(events)


def _continue(session: Session, command: ContinueSession) -> tuple[SessionEvent, ...]:
    if session.stage == "closed":
        raise SessionIsClosed(f"session {session.display_key} is closed and takes no messages")
    return (
        SessionContinued(
            run_id=command.run_id,
            role=command.role,
            control_scope=command.control_scope,
            settled=command.settled,
        ),
    )


def _change_preamble(session: Session, command: ChangePreamble) -> tuple[SessionEvent, ...]:
    if session.run_id is None:
        raise NotSpawnedHere(
            f"session {session.display_key} was not spawned here, so its prompts are not made here"
        )
    if session.stage == "closed":
        raise SessionIsClosed(
            f"session {session.display_key} is closed, so it has no later run to give a preamble to"
        )
    known = session.preamble_position is not None
    if known and _hash(session.preamble) == _hash(command.preamble):
        return ()
    return (PreambleChanged(preamble=command.preamble, by=command.by),)


def _hash(ref: ContentRef | None) -> str | None:
    # The hash is keyed by session, so within one session equal texts have equal hashes.
    return ref.hmac if ref is not None else None


def _provide(session: Session, command: ProvideTranscript) -> tuple[SessionEvent, ...]:
    if session.run_id is not None:
        raise TranscriptStoredHere(
            f"session {session.display_key} was spawned here, so its transcript is recorded"
            " here and cannot be uploaded"
        )
    if session.stage == "closed":
        raise SessionIsClosed(
            f"session {session.display_key} is closed; its transcript cannot be replaced"
        )
    known = session.transcript
    # Within one session, equal texts have equal hashes.
    if known is not None and (known.content.hmac, known.content.bytes, known.tokens) == (
        command.content.hmac,
        command.content.bytes,
        command.tokens,
    ):
        return ()
    return (
        TranscriptProvided(
            entries=command.entries,
            tokens=command.tokens,
            content=command.content,
            by=command.by,
        ),
    )

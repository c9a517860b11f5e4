"""What follows from a command to a session, given what is on record about it."""

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

# What follows when a session shares something with its family, or is given what that shares.


class ChangeSharedContext(Command, kw_only=False):
    """Write into what the session shares, or take away. Texts are those of the session.

    `expected` is the position at which whoever patches saw it last; None when it does not matter.
    """

    changes: tuple[SharedChange, ...]
    cause: Literal["spawn", "patch"]
    run_id: UUID | None = None
    by: str | None = None
    expected: int | None = None


class InheritSharedContext(Command, kw_only=False):
    """A run of the session starts with this."""

    run_id: UUID
    from_session: str
    at_position: int
    keys: tuple[SharedKey, ...]


class ContextMoved(Rejected):
    """What the session shares is not what the patch was made for any more."""

    def __init__(self, current: int) -> None:
        super().__init__(
            f"the shared context is at version {current} by now; read it and patch that"
        )
        self.current = current


def share(session: Session, command: ChangeSharedContext) -> tuple[SessionEvent, ...]:
    """A spawn's keys come even when its requester was closed meanwhile; a patch does not."""
    if command.cause == "patch" and session.stage == "closed":
        raise SessionIsClosed(f"session {session.display_key} is closed and shares no more")
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
    """Nothing when there is nothing, and nothing was there before."""
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
    """Give the run a place. `active_children` is what the rule saw, `max_children` the cap."""

    run_id: UUID
    max_children: int


class AdmitContinuation(Command, kw_only=False):
    """Give the run of a child that is there a place, also of a session that was put away: its
    children may outlive it. One that `replaces` another has the place of that one."""

    run_id: UUID
    max_children: int
    replaces: UUID | None = None


class ContinueSession(Command, kw_only=False):
    """Go on with another run."""

    run_id: UUID
    role: Role
    control_scope: ControlScope
    settled: tuple[UUID, ...] = ()


class ReleaseChild(Command, kw_only=False):
    """The run and all below it are over."""

    run_id: UUID


class SettleChild(Command, kw_only=False):
    """The run is announced or refused. `reports` are the children of which may be told then."""

    run_id: UUID
    reports: tuple[UUID, ...] = ()


class ProvideTranscript(Command, kw_only=False):
    """Keep what has been said in the session; `content` is a text of that session's own."""

    entries: int
    tokens: int | None
    content: ContentRef
    by: str


class ChangePreamble(Command, kw_only=False):
    """Put something else in front of the prompts of the session's later runs; None for nothing."""

    preamble: ContentRef | None
    by: str


class CloseSession(Command, kw_only=False):
    """Put the session away."""

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
    """All places are taken. The rule says so first; this is the last guard."""


class NotSpawnedHere(Rejected):
    """The session is nobody's child here, and has no runs."""


class TranscriptStoredHere(Rejected):
    """The session is a child of ours: what was said in it is on record, and nobody's to tell."""


def decide(session: Session | None, command: SessionCommand) -> tuple[SessionEvent, ...]:
    """The events to record for `command`; raises `Rejected` when it does not fit the record.

    Repeating what is already so (observing a known session, releasing a released child, the same
    transcript, closing a closed session) records nothing.
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
                raise SessionIsClosed(f"session {session.display_key} is closed and spawns no more")
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
            f"session {session.display_key} was not spawned here, and no prompt of it is made here"
        )
    if session.stage == "closed":
        raise SessionIsClosed(f"session {session.display_key} is closed and has no later run")
    known = session.preamble_position is not None
    if known and _hash(session.preamble) == _hash(command.preamble):
        return ()
    return (PreambleChanged(preamble=command.preamble, by=command.by),)


def _hash(ref: ContentRef | None) -> str | None:
    """Of the text, under the session's own key: the same for the same text."""
    return ref.hmac if ref is not None else None


def _provide(session: Session, command: ProvideTranscript) -> tuple[SessionEvent, ...]:
    if session.run_id is not None:
        raise TranscriptStoredHere(
            f"session {session.display_key} was spawned here, and its transcript is kept here"
        )
    if session.stage == "closed":
        raise SessionIsClosed(f"session {session.display_key} is closed and says no more")
    known = session.transcript
    # The hash under the session's own key is the same for the same text.
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

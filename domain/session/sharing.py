"""What follows when a session shares something with its family, or is given what that shares."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from domain.session.events import SessionEvent, SharedContextChanged, SharedContextInherited
from domain.session.state import Session
from domain.values.refusals import Rejected, SessionIsClosed
from domain.values.shared_values import SharedChange, SharedKey


@dataclass(frozen=True, slots=True)
class ChangeSharedContext:
    """Write into what the session shares, or take away. Texts are those of the session.

    `expected` is the position at which whoever patches saw it last; None when it does not matter.
    """

    changes: tuple[SharedChange, ...]
    cause: Literal["spawn", "patch"]
    run_id: UUID | None = None
    by: str | None = None
    expected: int | None = None


@dataclass(frozen=True, slots=True)
class InheritSharedContext:
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

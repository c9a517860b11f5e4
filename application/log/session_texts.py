"""Keeping texts of a session that may not have had any: its key is made with the first of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from application.log.event_log import Content, ContentKey
from application.log.texts import TextStore
from application.log.unit_of_work import ContentsErased, UnitOfWork
from domain.session.state import Session
from domain.values.refusals import ReadAgain


@dataclass(frozen=True, slots=True)
class SessionTexts:
    """Collects texts of a session for one append; `is_new_key` when it had no key when it was
    read."""

    session_id: UUID
    keeper: TextStore
    key: ContentKey
    is_new_key: bool

    @property
    def kept(self) -> Sequence[Content]:
        """What was collected."""
        return self.keeper.kept

    @property
    def keys(self) -> tuple[ContentKey, ...]:
        """The key, when it is to be recorded with the texts."""
        return (self.key,) if self.is_new_key else ()

    def must_fit(self, session: Session | None) -> None:
        """Raises `ReadAgain` when the session, as it is on record, is another one than was read or
        came to have texts meanwhile."""
        if session is not None and session.session_id != self.session_id:
            raise ReadAgain("the session was seen for the first time meanwhile")
        if self.is_new_key and has_texts(session):
            raise ReadAgain("the first text of the session was kept meanwhile")


async def open_session_texts(
    work: UnitOfWork, session: Session | None, session_id: UUID
) -> SessionTexts:
    """A keeper of texts for a session; `session_id` is its own, or the one that it will have.

    Raises `ContentsErased`.
    """
    ids = work.identities
    key = await work.contents.key(session_id) if session is not None else None
    if key is None and has_texts(session):
        assert session is not None
        raise ContentsErased(f"the texts of session {session.display_key} were erased")
    made = key or ids.content_key()
    keeper = TextStore(session_id, made, ids.event_id)
    return SessionTexts(session_id, keeper, ContentKey(session_id, made), key is None)


def has_texts(session: Session | None) -> bool:
    """Whether anything was ever kept of the session. A child has its task."""
    if session is None:
        return False
    known = (session.run_id, session.transcript, session.shared_position)
    return any(one is not None for one in known)

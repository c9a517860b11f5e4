"""Making content references: a text, its id and its keyed hash, ready for one append."""

import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from application.log.event_log import Content, ContentKey
from domain.session.state import Session
from domain.values.record import ContentRef
from domain.values.refusals import ReadAgain, Rejected


class ContentsErased(Rejected):
    """The session's key was destroyed, so nothing can be recorded about its texts any more."""


def keyed_hash(key: bytes, data: bytes) -> str:
    """HMAC-SHA256 in hexadecimal."""
    return hmac.digest(key, data, "sha256").hex()


class TextStore:
    """Collects the texts of one append. `new_id` mints the content ids. `known` are the texts that
    the same decision has kept before: made again, it refers to them by the same ids."""

    def __init__(
        self,
        session_id: UUID,
        key: bytes,
        new_id: Callable[[], UUID],
        known: Sequence[Content] = (),
        keyed: hmac.HMAC | None = None,
    ) -> None:
        self._session_id = session_id
        self._key = key
        # To copy it takes half of what the hash of a short text takes.
        self._keyed = keyed or hmac.new(key, digestmod="sha256")
        self._new_id = new_id
        self._known = known
        self._contents: list[Content] = []

    @property
    def key(self) -> bytes:
        """The session's key."""
        return self._key

    @property
    def contents(self) -> tuple[Content, ...]:
        """What was collected so far, in order."""
        return tuple(self._contents)

    def store(self, kind: str, text: str) -> ContentRef:
        """Keep a text and refer to it."""
        number = len(self._contents)
        if number < len(self._known):
            known = self._known[number]
            if (known.kind, known.text) == (kind, text):
                self._contents.append(known)
                return known.ref
        data = text.encode()
        ref = ContentRef(id=self._new_id(), bytes=len(data), hmac=self.hash(data))
        self._contents.append(Content(ref, self._session_id, kind, text))
        return ref

    def hash(self, data: bytes) -> str:
        """The keyed hash of something that is not kept by itself."""
        keyed = self._keyed.copy()
        keyed.update(data)
        return keyed.hexdigest()

    def empty_copy(self) -> "TextStore":
        """The same session, without texts: for a decision that may be made more than once."""
        return TextStore(self._session_id, self._key, self._new_id, keyed=self._keyed)


@dataclass(frozen=True, slots=True)
class SessionTexts:
    """Texts of a session that may have had none, for one append; `is_new_key` when its key is
    recorded with the first of them."""

    session_id: UUID
    text_store: TextStore
    key: ContentKey
    is_new_key: bool

    @property
    def contents(self) -> Sequence[Content]:
        """What was collected."""
        return self.text_store.contents

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


def has_texts(session: Session | None) -> bool:
    """Whether anything was ever kept of the session. A child has its task."""
    if session is None:
        return False
    known = (session.run_id, session.transcript, session.shared_position)
    return any(one is not None for one in known)


# Free texts beside the log.


class Contents(Protocol):
    """Reads what appends have kept."""

    async def key(self, session_id: UUID) -> bytes | None:
        """The session's key; None when it was destroyed."""
        ...

    async def text(self, ref: ContentRef) -> str | None:
        """The text of a reference; None when it was erased."""
        ...

    async def texts(
        self, refs: Iterable[ContentRef], *, recent: bool = False
    ) -> Mapping[UUID, str]:
        """Several texts by content id; erased ones are absent. With `recent` those that this
        process has recorded within half a second are not looked up."""
        ...

    async def stored_bytes(self, session_id: UUID, kind: str) -> int:
        """How many bytes the texts of this kind have that are kept of a session."""
        ...

    async def previews(self, refs: Iterable[ContentRef]) -> Mapping[UUID, str]:
        """The first 200 characters of several texts."""
        ...

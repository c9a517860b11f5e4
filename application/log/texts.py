"""Content references: collect the texts of an append with their ids and keyed hashes."""

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
    """The session's key was destroyed, so its texts can no longer be recorded."""


def keyed_hash(key: bytes, data: bytes) -> str:
    """Return the HMAC-SHA256 in hexadecimal."""
    return hmac.digest(key, data, "sha256").hex()


class TextStore:
    """Collector of the texts of one append.

    Args:
        new_id: Creates content ids.
        known: Texts that the same decision stored in an earlier attempt. If they are stored again,
            they keep their ids.
        keyed: An HMAC with this key to copy, if there is one.
    """

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
        # Copying an HMAC takes half the time of hashing a short text.
        self._keyed = keyed or hmac.new(key, digestmod="sha256")
        self._new_id = new_id
        self._known = known
        self._contents: list[Content] = []

    @property
    def key(self) -> bytes:
        return self._key

    @property
    def contents(self) -> tuple[Content, ...]:
        """Return the texts collected so far, in order."""
        return tuple(self._contents)

    def store(self, kind: str, text: str) -> ContentRef:
        """Store a text and return its reference."""
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
        """Return the keyed hash of data that is not stored as a text."""
        keyed = self._keyed.copy()
        keyed.update(data)
        return keyed.hexdigest()

    def empty_copy(self) -> "TextStore":
        """Return a store for the same session without texts, for a decision that may run more than
        once."""
        return TextStore(self._session_id, self._key, self._new_id, keyed=self._keyed)


@dataclass(frozen=True, slots=True)
class SessionTexts:
    """Texts for a session that may have had none, for one append.

    `is_new_key` is True if the session's key is recorded with the first of them.
    """

    session_id: UUID
    text_store: TextStore
    key: ContentKey
    is_new_key: bool

    @property
    def contents(self) -> Sequence[Content]:
        return self.text_store.contents

    @property
    def keys(self) -> tuple[ContentKey, ...]:
        """Return the key, if it must be recorded with the texts."""
        return (self.key,) if self.is_new_key else ()

    def require_fit(self, session: Session | None) -> None:
        """Raise `ReadAgain` if the recorded session has another id, or got its first text after the
        read."""
        if session is not None and session.session_id != self.session_id:
            raise ReadAgain("the session was seen for the first time meanwhile")
        if self.is_new_key and has_texts(session):
            raise ReadAgain("the first text of the session was kept meanwhile")


def has_texts(session: Session | None) -> bool:
    """Return True if a text was ever stored for the session. A child always has its task."""
    if session is None:
        return False
    markers = (session.run_id, session.transcript, session.shared_position)
    return any(marker is not None for marker in markers)


# Free texts beside the log.


class Contents(Protocol):
    """Reader of stored texts."""

    async def key(self, session_id: UUID) -> bytes | None:
        """Return the session's key; None if it was destroyed."""
        ...

    async def text(self, ref: ContentRef) -> str | None:
        """Return a text; None if it was erased."""
        ...

    async def texts(
        self, refs: Iterable[ContentRef], *, recent: bool = False
    ) -> Mapping[UUID, str]:
        """Return several texts by content id. Erased texts are absent.

        With `recent`, texts that this process recorded within the last half second are served from
        memory.
        """
        ...

    async def stored_bytes(self, session_id: UUID, kind: str) -> int:
        """Return the total size of a session's stored texts of this kind."""
        ...

    async def previews(self, refs: Iterable[ContentRef]) -> Mapping[UUID, str]:
        """Return the first 200 characters of several texts."""
        ...

    async def ends(self, refs: Iterable[ContentRef]) -> Mapping[UUID, str]:
        """Return the last 2,000 characters of several texts, without trailing blanks."""
        ...

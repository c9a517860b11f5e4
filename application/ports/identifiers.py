"""What cannot be computed: ids and keys."""

from typing import Protocol
from uuid import UUID


class Identities(Protocol):
    """Mints ids and keys; no two calls give the same."""

    def run_id(self) -> UUID:
        """A UUID v4 for a run, a session or a child's key."""
        ...

    def event_id(self) -> UUID:
        """A UUID v7 for an event, a command or a content."""
        ...

    def content_key(self) -> bytes:
        """32 random bytes: a session's key for keyed hashes."""
        ...


# Tokens for children, by which they call back.


class ChildTokens(Protocol):
    """Mints a token that is good while the run is held under that claim."""

    def mint(self, run_id: UUID, epoch: int) -> str:
        """The token; it is never recorded."""
        ...

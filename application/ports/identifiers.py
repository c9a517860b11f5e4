"""Random ids, keys and tokens."""

from typing import Protocol
from uuid import UUID


class Identities(Protocol):
    """Generator of unique ids and keys."""

    def run_id(self) -> UUID:
        """Return a UUID v4 for a run, a session or a child's session key."""
        ...

    def event_id(self) -> UUID:
        """Return a UUID v7 for an event, a command or a content."""
        ...

    def content_key(self) -> bytes:
        """Return 32 random bytes: a session's key for keyed hashes."""
        ...


# Tokens with which children call back.


class ChildTokens(Protocol):
    """Issuer of tokens that are valid while the run is held under one claim."""

    def mint(self, run_id: UUID, epoch: int) -> str:
        """Return a token for this run and claim. It is never recorded."""
        ...

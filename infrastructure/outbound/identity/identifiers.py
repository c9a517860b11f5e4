"""Ids and keys from the operating system's randomness."""

import secrets
from uuid import UUID, uuid4

from uuid_utils.compat import uuid7

CONTENT_KEY_BYTES = 32


class RandomIdentities:
    """Implements `Identities`."""

    def run_id(self) -> UUID:
        """A UUID v4."""
        return uuid4()

    def event_id(self) -> UUID:
        """A UUID v7: ordered by time."""
        return uuid7()

    def content_key(self) -> bytes:
        """A session's key."""
        return secrets.token_bytes(CONTENT_KEY_BYTES)

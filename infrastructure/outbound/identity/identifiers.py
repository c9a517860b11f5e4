"""Ids and keys. Those of runs and sessions are random by the operating system."""

import secrets
from uuid import UUID, SafeUUID, uuid4

from uuid_utils import uuid7

CONTENT_KEY_BYTES = 32
_SAFETY = SafeUUID.unknown
_set = object.__setattr__


class RandomIdentities:
    """Implements `Identities`."""

    def run_id(self) -> UUID:
        """A UUID v4."""
        return uuid4()

    def event_id(self) -> UUID:
        """A UUID v7: ordered by time.

        A life makes 27, so its class's checks of what is a UUID by construction are left out.
        """
        made = object.__new__(UUID)
        _set(made, "int", uuid7().int)
        _set(made, "is_safe", _SAFETY)
        return made

    def content_key(self) -> bytes:
        """A session's key."""
        return secrets.token_bytes(CONTENT_KEY_BYTES)

"""Random ids and keys."""

import secrets
from uuid import UUID, SafeUUID, uuid4

from uuid_utils import uuid7

CONTENT_KEY_BYTES = 32
_SAFETY = SafeUUID.unknown
_set = object.__setattr__


class RandomIdentities:
    """Implementation of `Identities`."""

    def run_id(self) -> UUID:
        """Return a UUID v4."""
        return uuid4()

    def event_id(self) -> UUID:
        """Return a UUID v7, which is ordered by time.

        A run needs 27 of them, so the validation in the constructor of UUID is skipped.
        """
        made = object.__new__(UUID)
        _set(made, "int", uuid7().int)
        _set(made, "is_safe", _SAFETY)
        return made

    def content_key(self) -> bytes:
        """Return a key for the contents of a session."""
        return secrets.token_bytes(CONTENT_KEY_BYTES)

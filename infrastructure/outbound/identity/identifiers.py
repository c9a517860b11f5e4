"""Ids and keys from the operating system's randomness."""

import secrets
from uuid import UUID, SafeUUID

from uuid_utils import uuid4, uuid7

CONTENT_KEY_BYTES = 32
_SAFETY = SafeUUID.unknown
_set = object.__setattr__


class RandomIdentities:
    """Implements `Identities`."""

    def run_id(self) -> UUID:
        """A UUID v4."""
        return _id(uuid4().int)

    def event_id(self) -> UUID:
        """A UUID v7: ordered by time."""
        return _id(uuid7().int)

    def content_key(self) -> bytes:
        """A session's key."""
        return secrets.token_bytes(CONTENT_KEY_BYTES)


def _id(number: int) -> UUID:
    """Return the UUID of a number that is one, in a third of the time that its class takes."""
    made = object.__new__(UUID)
    _set(made, "int", number)
    _set(made, "is_safe", _SAFETY)
    return made

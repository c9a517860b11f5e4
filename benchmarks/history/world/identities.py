"""Ids and keys of a simulation, reproducible by their seed."""

import random
from uuid import UUID

CONTENT_KEY_BYTES = 32

_V4 = (4 << 76) | (2 << 62)
_V4_FREE = ~((0xF << 76) | (0x3 << 62)) & ((1 << 128) - 1)
_V7 = (7 << 76) | (2 << 62)


class SeededIdentities:
    """Implements `Identities`. `now_ms`, the simulation's clock in milliseconds since 1970, is the
    beginning of event ids, as in a real UUID of version 7.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.now_ms = 0

    def run_id(self) -> UUID:
        """Return a UUID of version 4."""
        return UUID(int=self._random.getrandbits(128) & _V4_FREE | _V4)

    def event_id(self) -> UUID:
        """Return a UUID of version 7."""
        bits = self._random.getrandbits(74)
        return UUID(int=self.now_ms << 80 | (bits >> 62) << 64 | bits & (1 << 62) - 1 | _V7)

    def content_key(self) -> bytes:
        return self._random.randbytes(CONTENT_KEY_BYTES)

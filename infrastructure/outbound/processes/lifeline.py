"""The gate's end of the pipe from its holder: what is said on it, and whether it still speaks.

Every byte is a sign of life. A holder that is frozen keeps the pipe open and says nothing; it is
treated like one that let go, because its lease, and with it the right to its programs, is gone.
"""

import math
import os
import select
import time

from infrastructure.outbound.child_processes.protocol import GO

READ_BYTES = 64
# No wait is longer, whatever the limit: the number must fit what poll() takes.
POLL_MS_MAX = 60_000


class LivenessPipe:
    """`silence_seconds_max` is None until a limit is known. Counts on a monotonic clock."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.silence_seconds_max: float | None = None
        self.fell_silent = False
        self._heard = time.monotonic()
        self._poller = select.poll()
        self._poller.register(descriptor, select.POLLIN)

    def read_exactly(self, count: int) -> bytes | None:
        """None when it ends before. Knows no silence: nothing can have been executed yet."""
        parts = []
        while count:
            part = self._read(min(count, 1 << 20))
            if not part:
                return None
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def wait_for_go(self) -> bool:
        """False when it ended or fell silent before."""
        while True:
            waiting = self._poller.poll(self.poll_ms())
            late = self._is_late()
            said = self._read(READ_BYTES) if waiting else None
            if said == b"":
                return False
            # A gate that was frozen itself cannot tell how old a go is that it finds then: the
            # program may have been given up, so it is not executed.
            if late and (said is None or GO in said):
                self.fell_silent = True
                return False
            if said is not None and GO in said:
                return True

    def is_lost(self) -> bool:
        """Takes in what was said, without waiting; true when it has ended or fallen silent."""
        # What came before the limit counts, even if the gate comes to read it only afterwards.
        if self._poller.poll(0):
            return not self._read(READ_BYTES)
        self.fell_silent = self._is_late()
        return self.fell_silent

    def poll_ms(self) -> int | None:
        """How long a wait for the next byte may be; None without a limit."""
        if self.silence_seconds_max is None:
            return None
        left = self._heard + self.silence_seconds_max - time.monotonic()
        return max(0, math.ceil(min(left * 1000, POLL_MS_MAX)))

    def _read(self, count: int) -> bytes:
        part = os.read(self.descriptor, count)
        self._heard = time.monotonic()
        return part

    def _is_late(self) -> bool:
        limit = self.silence_seconds_max
        return limit is not None and time.monotonic() - self._heard >= limit

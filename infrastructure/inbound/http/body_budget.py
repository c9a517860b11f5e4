"""How much of large request bodies one process holds at once."""

import asyncio
from collections import deque

BODIES_BYTES_MAX = 256 * 1024 * 1024
SMALL_BODY_BYTES_MAX = 64 * 1024
"""Bodies of no more than this are not counted."""
WAIT_SECONDS_MAX = 5.0
WAITING_MAX = 1_000


class BudgetExhausted(Exception):
    """There was no room in time."""


class BodyBudget:
    """Room for so many bytes. Who comes first has it first, so that a large body is not passed by
    smaller ones for ever."""

    def __init__(
        self,
        bytes_max: int = BODIES_BYTES_MAX,
        *,
        wait_seconds_max: float = WAIT_SECONDS_MAX,
        waiting_max: int = WAITING_MAX,
    ) -> None:
        self._free_bytes = bytes_max
        self._wait_seconds_max = wait_seconds_max
        self._waiting_max = waiting_max
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def free_bytes(self) -> int:
        """The room that is left."""
        return self._free_bytes

    @property
    def waiting(self) -> int:
        """How many wait for room."""
        return len(self._waiting)

    async def take(self, size_bytes: int) -> None:
        """Room for a body, to be given back. Raises `BudgetExhausted` when there is none in
        time."""
        if not self._waiting and size_bytes <= self._free_bytes:
            self._free_bytes -= size_bytes
            return
        if len(self._waiting) >= self._waiting_max:
            raise BudgetExhausted
        had = asyncio.get_running_loop().create_future()
        self._waiting.append((size_bytes, had))
        try:
            async with asyncio.timeout(self._wait_seconds_max):
                await had
        except BaseException as error:
            self._leave(size_bytes, had)
            if isinstance(error, TimeoutError):
                raise BudgetExhausted from None
            raise

    def give_back(self, size_bytes: int) -> None:
        """What was taken is free."""
        self._free_bytes += size_bytes
        self._grant_next()

    def _leave(self, size_bytes: int, had: asyncio.Future[None]) -> None:
        if had.done() and not had.cancelled():
            # It came in the moment when nobody waited any more.
            self.give_back(size_bytes)
            return
        self._waiting = deque(one for one in self._waiting if one[1] is not had)
        self._grant_next()

    def _grant_next(self) -> None:
        while self._waiting:
            size_bytes, had = self._waiting[0]
            if not had.done():
                if size_bytes > self._free_bytes:
                    return
                self._free_bytes -= size_bytes
                had.set_result(None)
            self._waiting.popleft()

"""The body of a request on its way in: counted, and what is too much of it thrown away.

Whoever sends a whole request before it reads the answer would find the connection reset, and no
answer, if the server closed it on bytes that it has not taken. So an answer to a body that is too
large is sent at once, but the connection is closed only when the rest has been taken off it.

A large body is not taken in before there is room for it.
"""

import asyncio
from collections import deque

from starlette.types import Message, Receive, Send

from infrastructure.inbound.http.responses.problems import HttpProblem

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


BODY_BYTES_MAX = 16 * 1024 * 1024
DISCARDED_BYTES_MAX = 64 * 1024 * 1024
DISCARD_SECONDS_MAX = 5.0
LENGTH_DIGITS_MAX = 20
_FULL = "the service holds as many large requests as it can; ask again in a moment"


class BodyIntake:
    """Takes in the body of one request, up to the limit. A body that declares more than would be
    thrown away is not waited for at all. `release` is called when the request was answered."""

    def __init__(self, receive: Receive, budget: BodyBudget) -> None:
        self._receive = receive
        self._budget = budget
        self._declared_bytes = 0
        self._had_bytes = 0
        self._taken_bytes = 0
        self._discards = False

    def declare(self, length: str) -> None:
        """The length that the request says it has. 413 for one that is none or is too large."""
        is_number = length.isdecimal() and len(length) <= LENGTH_DIGITS_MAX
        if is_number and int(length) <= BODY_BYTES_MAX:
            self._declared_bytes = int(length)
            return
        self._discards = is_number and int(length) <= DISCARDED_BYTES_MAX
        raise self._too_large()

    async def receive(self) -> Message:
        """The next message: a length that was not declared is counted as it comes, 413 when it
        is too large. 503 when there is no room for it in time."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._taken_bytes += len(message.get("body", b""))
            if self._taken_bytes > BODY_BYTES_MAX:
                self._discards = bool(message.get("more_body"))
                raise self._too_large()
            await self._must_have_room(bool(message.get("more_body")))
        return message

    def release(self) -> None:
        """Nothing of the body is held any more."""
        had, self._had_bytes = self._had_bytes, 0
        self._budget.give_back(had)

    async def _must_have_room(self, has_more: bool) -> None:
        """Room for all of it at once: those who had a part each would wait for each other."""
        needed = max(self._declared_bytes, self._taken_bytes)
        if needed <= max(SMALL_BODY_BYTES_MAX, self._had_bytes):
            return
        if has_more and self._taken_bytes > self._declared_bytes:
            needed = BODY_BYTES_MAX
        try:
            await self._budget.take(needed - self._had_bytes)
        except BudgetExhausted:
            self._discards = has_more
            headers = {"Connection": "close"} if has_more else {}
            raise HttpProblem("unavailable", _FULL, headers=headers) from None
        self._had_bytes = needed

    async def answer(self, message: Message, send: Send) -> None:
        """Send a part of the answer. Its end comes after the rest of a body that was too large,
        for the connection is closed with it."""
        ends = message["type"] == "http.response.body" and not message.get("more_body")
        if not ends or not self._discards:
            await send(message)
            return
        await send({**message, "more_body": True})
        await self._discard()
        await send({"type": "http.response.body", "body": b""})

    async def _discard(self) -> None:
        discarded_bytes = 0
        try:
            async with asyncio.timeout(DISCARD_SECONDS_MAX):
                while discarded_bytes < DISCARDED_BYTES_MAX:
                    message = await self._receive()
                    discarded_bytes += len(message.get("body", b""))
                    if not message.get("more_body"):
                        return
        except TimeoutError:
            return

    def _too_large(self) -> HttpProblem:
        return HttpProblem(
            "too_large",
            f"a request body may have {BODY_BYTES_MAX} bytes at most; send less",
            headers={"Connection": "close"},
        )

"""Limits on request bodies: size of each, and memory of all.

A client that sends its whole request before it reads would get a connection reset and no answer if
the server closed the connection with bytes unread. So the answer to a body that is too large is
sent at once, but the connection is closed only after the rest was read and discarded.

A large body is not read before memory is available for it.
"""

import asyncio
from collections import Counter
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

from starlette.types import Message, Receive, Send

from infrastructure.inbound.http.responses.problems import HttpProblem

BODIES_BYTES_MAX = 256 * 1024 * 1024
"""Budget for all large bodies that are read or processed at once."""
SHARE_BYTES_MAX = 64 * 1024 * 1024
"""Share of the budget for one token. Requests without a token have one share together."""
SMALL_BODY_BYTES_MAX = 64 * 1024
"""Bodies up to this size are not counted."""


WAIT_SECONDS_MAX = 5.0
WAITING_MAX = 1_000
SHARE_WAITING_MAX = 100
NOBODY = ""
"""Owner of bodies that come without a token."""
_SCOPE_NAME = "spawnlog.body"


class BodyBudgetExhaustedError(Exception):
    """No memory was free in time. `is_share` is True if the owner's own share was used up."""

    def __init__(self, *, is_share: bool) -> None:
        super().__init__()
        self.is_share = is_share


@dataclass(slots=True, eq=False)
class _Waiting:
    owner: str
    size_bytes: int
    had: asyncio.Future[None]


class BodyBudget:
    """Memory budget for large bodies, with a maximum share for each owner.

    Requests are granted first come, first served, so that small bodies cannot starve a large one.
    An owner that waits for its own share does not block others.
    """

    def __init__(
        self,
        bytes_max: int = BODIES_BYTES_MAX,
        *,
        share_bytes_max: int = SHARE_BYTES_MAX,
        wait_seconds_max: float = WAIT_SECONDS_MAX,
        waiting_max: int = WAITING_MAX,
        share_waiting_max: int = SHARE_WAITING_MAX,
    ) -> None:
        self._free_bytes = bytes_max
        self._share_bytes_max = share_bytes_max
        self._wait_seconds_max = wait_seconds_max
        self._waiting_max = waiting_max
        self._share_waiting_max = share_waiting_max
        self._taken_bytes: Counter[str] = Counter()
        self._waiting: list[_Waiting] = []

    @property
    def free_bytes(self) -> int:
        """Return the number of bytes that are free."""
        return self._free_bytes

    @property
    def waiting(self) -> int:
        """Return the number of requests that wait for memory."""
        return len(self._waiting)

    async def take(self, owner: str, size_bytes: int) -> None:
        """Reserve memory for a body until `give_back`.

        Raises:
            BodyBudgetExhaustedError: No memory was free in time, or too many requests wait.
        """
        own = sum(entry.owner == owner for entry in self._waiting)
        if own >= self._share_waiting_max or len(self._waiting) >= self._waiting_max:
            raise BodyBudgetExhaustedError(is_share=own >= self._share_waiting_max)
        entry = _Waiting(owner, size_bytes, asyncio.get_running_loop().create_future())
        self._waiting.append(entry)
        self._grant()
        if entry.had.done():
            return
        try:
            async with asyncio.timeout(self._wait_seconds_max):
                await entry.had
        except BaseException as error:
            is_share = not self._has_share(entry)
            self._leave(entry)
            if isinstance(error, TimeoutError):
                raise BodyBudgetExhaustedError(is_share=is_share) from None
            raise

    def give_back(self, owner: str, size_bytes: int) -> None:
        """Release memory that was reserved with `take`."""
        self._free_bytes += size_bytes
        self._taken_bytes[owner] -= size_bytes
        if not self._taken_bytes[owner]:
            del self._taken_bytes[owner]
        self._grant()

    def _leave(self, entry: _Waiting) -> None:
        if entry.had.done() and not entry.had.cancelled():
            # It was granted in the moment in which the wait ended.
            self.give_back(entry.owner, entry.size_bytes)
            return
        self._waiting.remove(entry)
        self._grant()

    def _has_share(self, entry: _Waiting) -> bool:
        return self._taken_bytes[entry.owner] + entry.size_bytes <= self._share_bytes_max

    def _grant(self) -> None:
        left: list[_Waiting] = []
        is_full = False
        for entry in self._waiting:
            if is_full or entry.had.done() or not self._has_share(entry):
                left.append(entry)
            elif entry.size_bytes > self._free_bytes:
                is_full = True
                left.append(entry)
            else:
                self._free_bytes -= entry.size_bytes
                self._taken_bytes[entry.owner] += entry.size_bytes
                entry.had.set_result(None)
        self._waiting = left


BODY_BYTES_MAX = 16 * 1024 * 1024
DISCARDED_BYTES_MAX = 64 * 1024 * 1024
DISCARD_SECONDS_MAX = 5.0
LENGTH_DIGITS_MAX = 20
_FULL = "too many large requests in progress; retry in a moment"
_SHARE_FULL = (
    f"this token has {SHARE_BYTES_MAX >> 20} MiB of large requests in progress, the maximum;"
    " retry when one of them is answered"
)


class BodyIntake:
    """Reader of the body of one request, up to the limit.

    The rest of a body that is too large is discarded before the connection closes, unless it
    declares more than DISCARDED_BYTES_MAX. `release` is called when the request was answered.
    """

    def __init__(self, receive: Receive, budget: BodyBudget) -> None:
        self._receive = receive
        self._budget = budget
        self._owner = NOBODY
        self._declared_bytes = 0
        self._had_bytes = 0
        self._taken_bytes = 0
        self._discards = False

    def offer_in(self, scope: MutableMapping[str, Any]) -> None:
        """Put the intake into the scope, where `note_owner` finds it."""
        scope[_SCOPE_NAME] = self

    def note_owner(self, owner: str) -> None:
        """Set the owner of the body. No-op once memory is reserved."""
        if not self._had_bytes:
            self._owner = owner

    def declare(self, length: str) -> None:
        """Note the declared length. Raise a 413 problem if it is malformed or too large."""
        is_number = length.isdecimal() and len(length) <= LENGTH_DIGITS_MAX
        if is_number and int(length) <= BODY_BYTES_MAX:
            self._declared_bytes = int(length)
            return
        self._discards = is_number and int(length) <= DISCARDED_BYTES_MAX
        raise self._too_large()

    async def receive(self) -> Message:
        """Return the next message, counting bytes that were not declared.

        Raises:
            HttpProblem: 413 if the body is too large, 429 or 503 if no memory was free in time.
        """
        message = await self._receive()
        if message["type"] == "http.request":
            self._taken_bytes += len(message.get("body", b""))
            if self._taken_bytes > BODY_BYTES_MAX:
                self._discards = bool(message.get("more_body"))
                raise self._too_large()
            await self._require_room(bool(message.get("more_body")))
        return message

    def release(self) -> None:
        """Release the memory of the body."""
        had, self._had_bytes = self._had_bytes, 0
        if had:
            self._budget.give_back(self._owner, had)

    async def _require_room(self, has_more: bool) -> None:
        """Reserve memory for the whole body at once: partial reservations could deadlock."""
        needed = max(self._declared_bytes, self._taken_bytes)
        if needed <= max(SMALL_BODY_BYTES_MAX, self._had_bytes):
            return
        if has_more and self._taken_bytes > self._declared_bytes:
            needed = BODY_BYTES_MAX
        try:
            await self._budget.take(self._owner, needed - self._had_bytes)
        except BodyBudgetExhaustedError as why:
            self._discards = has_more
            headers = {"Connection": "close"} if has_more else {}
            if why.is_share:
                raise HttpProblem("bodies_busy", _SHARE_FULL, headers=headers) from None
            raise HttpProblem("unavailable", _FULL, headers=headers) from None
        self._had_bytes = needed

    async def answer(self, message: Message, send: Send) -> None:
        """Send a part of the answer.

        If the body was too large, the rest of it is discarded before the end of the answer, since
        that end closes the connection.
        """
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
            f"a request body may have at most {BODY_BYTES_MAX} bytes",
            headers={"Connection": "close"},
        )


def note_owner(scope: MutableMapping[str, Any], owner: str) -> None:
    """Set the owner of a request's body. Call this before the body is read."""
    intake: BodyIntake | None = scope.get(_SCOPE_NAME)
    if intake is not None:
        intake.note_owner(owner)

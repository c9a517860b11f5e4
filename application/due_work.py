"""Works off what has become due: claims some of it, does it side by side, gives the claims up."""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from application import cancelling
from application.persisting import persistently
from application.ports.event_log import LogUnavailable
from application.repeating import Repeating

DUE_BATCH = 50
"""So much of one kind is under way at a time."""

DUE_SECONDS = 1.0
RELEASE_ATTEMPTS_MAX = 3

_log = logging.getLogger("spawnlog.due")


class DueWork:
    """One kind of it. `claim` gives at most so many runs that nobody else works on then, `do` does
    what is due of one, `release` ends the claims of runs. Whatever takes its time holds up nothing
    but itself, until `DUE_BATCH` of them are under way."""

    def __init__(
        self,
        kind: str,
        *,
        claim: Callable[[int], Awaitable[Sequence[UUID]]],
        do: Callable[[UUID], Awaitable[None]],
        release: Callable[[Sequence[UUID]], Awaitable[None]],
        seconds: float = DUE_SECONDS,
    ) -> None:
        self.kind = kind
        self._claim = claim
        self._do = do
        self._release = release
        self._claiming = asyncio.Lock()
        self._under_way: set[asyncio.Task[None]] = set()
        self._away: LogUnavailable | None = None
        self._repeating = Repeating(kind, self._take_up, seconds)

    def start(self) -> None:
        """Do what is due when woken, and look for it every `seconds`."""
        self._repeating.start()

    def wake(self) -> None:
        """Something may be due now."""
        self._repeating.wake()

    async def close(self) -> None:
        """Stop, in the middle of work if need be: its claims stand until they expire."""
        await self._repeating.close()
        await cancelling.end(tuple(self._under_way))

    async def work_off(self) -> None:
        """Do all that is due now, and wait until that is done and what was under way already.
        Raises `LogUnavailable` when the database is away."""
        await self._take_up()
        if self._under_way:
            await asyncio.wait(tuple(self._under_way))
        self._complain()

    async def _take_up(self) -> None:
        """Begin all that is due now; wait only while there is no room for it."""
        async with self._claiming:
            while True:
                self._complain()
                room = DUE_BATCH - len(self._under_way)
                if room <= 0:
                    await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
                    continue
                run_ids = await self._claim(room)
                for run_id in run_ids:
                    task = asyncio.create_task(self._see_to(run_id), name=f"{self.kind} {run_id}")
                    self._under_way.add(task)
                    task.add_done_callback(self._under_way.discard)
                if len(run_ids) < room:
                    return

    def _complain(self) -> None:
        away, self._away = self._away, None
        if away is not None:
            raise away

    async def _see_to(self, run_id: UUID) -> None:
        try:
            try:
                await self._do(run_id)
            except LogUnavailable as away:
                self._away = away
            await self._let_go(run_id)
        except LogUnavailable as away:
            self._away = away
        except Exception:
            # The claim of what failed stands until it expires, so that it holds up nobody.
            _log.exception("%s of run %s failed", self.kind, run_id)

    async def _let_go(self, run_id: UUID) -> None:
        attempts = itertools.count(1)
        await persistently(
            lambda: self._release([run_id]),
            given_up=lambda: next(attempts) == RELEASE_ATTEMPTS_MAX,
        )

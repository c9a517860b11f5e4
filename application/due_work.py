"""Works off what has become due: claims some of it, does it side by side, gives the claims up."""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from application.persisting import persistently
from application.ports.event_log import LogUnavailable

DUE_BATCH = 50
RELEASE_ATTEMPTS_MAX = 3

_log = logging.getLogger("spawnlog.due")


class DueWork:
    """One kind of it. `claim` gives at most so many runs that nobody else works on then, `do` does
    what is due of one, `release` ends the claims of runs."""

    def __init__(
        self,
        kind: str,
        *,
        claim: Callable[[int], Awaitable[Sequence[UUID]]],
        do: Callable[[UUID], Awaitable[None]],
        release: Callable[[Sequence[UUID]], Awaitable[None]],
    ) -> None:
        self._kind = kind
        self._claim = claim
        self._do = do
        self._release = release

    async def work_off(self) -> None:
        """Do all that is due now. Raises `LogUnavailable` when the database is away."""
        while run_ids := await self._claim(DUE_BATCH):
            results = await asyncio.gather(
                *(self._do(run_id) for run_id in run_ids), return_exceptions=True
            )
            failed: dict[UUID, BaseException] = {}
            away: LogUnavailable | None = None
            for run_id, result in zip(run_ids, results, strict=True):
                if isinstance(result, LogUnavailable):
                    away = result
                elif isinstance(result, BaseException):
                    failed[run_id] = result
                    _log.error("%s of run %s failed", self._kind, run_id, exc_info=result)
            # The claim of what failed stands until it expires, so that it holds up nobody.
            await self._let_go([one for one in run_ids if one not in failed])
            if away is not None:
                raise away
            if len(run_ids) < DUE_BATCH:
                return

    async def _let_go(self, run_ids: Sequence[UUID]) -> None:
        attempts = itertools.count(1)
        await persistently(
            lambda: self._release(run_ids),
            given_up=lambda: next(attempts) == RELEASE_ATTEMPTS_MAX,
        )

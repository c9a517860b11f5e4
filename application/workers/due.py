"""Workers for due work: claim it in batches, do it concurrently, release the claims."""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from uuid import UUID

from application.concurrency import tasks
from application.concurrency.bulkhead import CALLS_MAX, COMPARTMENTS_MAX, BulkheadFullError
from application.concurrency.periodic import PeriodicTask
from application.coordination.claims import Claim, Claims
from application.coordination.coordination import ClaimKind
from application.delivery.announce import Announcer
from application.delivery.archive import Archiver
from application.delivery.effects import EffectWorker
from application.log.event_log import LogUnavailableError
from application.log.retry import retry_while_unavailable
from application.session.continue_session import SessionContinuation
from application.spawn.dependencies import DependencyWaits

DUE_BATCH = 50
"""Maximum number of runs claimed at a time, and the default limit of work in progress."""


DUE_SECONDS = 1.0
RELEASE_ATTEMPTS_MAX = 3
_log = logging.getLogger("spawnlog.due")


class DueWork:
    """Worker for one kind of due work.

    Slow work blocks nothing else until `at_once_max` runs are in progress.

    Args:
        do: Does the due work of a run.
        seconds: Interval of the search for due work.
    """

    def __init__(
        self,
        kind: ClaimKind,
        claims: Claims,
        do: Callable[[UUID], Awaitable[None]],
        *,
        seconds: float | None = None,
        at_once_max: int | None = None,
    ) -> None:
        self.kind = kind
        self._claims = claims
        self._do = do
        self._at_once_max = at_once_max
        self._claiming = asyncio.Lock()
        self._under_way: set[asyncio.Task[None]] = set()
        self._away: LogUnavailableError | None = None
        self._repeating = PeriodicTask(kind, self._start_due, seconds or DUE_SECONDS)

    def start(self) -> None:
        """Start to do due work, when notified and periodically."""
        self._repeating.start()

    def notify(self) -> None:
        """Search for due work now."""
        self._repeating.notify()

    async def close(self) -> None:
        """Stop, even in the middle of work. Its claims remain until they expire."""
        await self._repeating.close()
        await tasks.cancel_all(tuple(self._under_way))

    async def run_all_due(self) -> None:
        """Do all work that is due now, and wait for it and for work already in progress.

        Raises:
            LogUnavailableError: If the database is away.
        """
        await self._start_due()
        if self._under_way:
            await asyncio.wait(tuple(self._under_way))
        self._log_failure()

    async def _start_due(self) -> None:
        """Start all work that is due now; wait only for free capacity."""
        async with self._claiming:
            while True:
                self._log_failure()
                room = min(DUE_BATCH, (self._at_once_max or DUE_BATCH) - len(self._under_way))
                if room <= 0:
                    await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
                    continue
                claims = await self._claims.take(self.kind, room)
                for claim in claims:
                    self._begin(claim)
                if len(claims) < room:
                    return

    def _begin(self, claim: Claim) -> None:
        task = asyncio.create_task(self._process(claim), name=f"{self.kind} {claim.run_id}")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        self._claims.renew_while(claim, task)

    def _log_failure(self) -> None:
        away, self._away = self._away, None
        if away is not None:
            raise away

    async def _process(self, claim: Claim) -> None:
        try:
            try:
                await self._do(claim.run_id)
            except LogUnavailableError as away:
                self._away = away
            await self._release_claim(claim)
        except LogUnavailableError as away:
            self._away = away
        except BulkheadFullError as why:
            # The claim is left to expire, so that other runs come first.
            _log.info("%s of run %s: %s", self.kind, claim.run_id, why)
        except Exception:
            # The claim of failed work is left to expire, so that it does not block other work.
            _log.exception("%s of run %s failed", self.kind, claim.run_id)

    async def _release_claim(self, claim: Claim) -> None:
        attempts = itertools.count(1)
        await retry_while_unavailable(
            lambda: self._claims.give_up(claim),
            given_up=lambda: next(attempts) == RELEASE_ATTEMPTS_MAX,
        )


# Workers by kind of work.


EFFECTS_AT_ONCE_MAX = COMPARTMENTS_MAX * CALLS_MAX
"""Reached only if all compartments are full, because effects wait in their own compartment."""


def announcement_work(claims: Claims, announcing: Announcer) -> DueWork:
    """Return the worker for announcements. It may call a hook for their targets."""
    return DueWork("announce", claims, announcing.announce)


def archive_work(claims: Claims, archiving: Archiver) -> DueWork:
    """Return the worker for archives. It calls no hooks."""
    return DueWork("archive", claims, archiving.archive)


def continuation_work(claims: Claims, continuing: SessionContinuation) -> DueWork:
    """Return the worker that continues sessions with a waiting message or with children's
    reports."""
    return DueWork("continue", claims, continuing.go_on)


def wait_work(claims: Claims, depending: DependencyWaits) -> DueWork:
    """Return the worker for runs with a dependency that is done."""
    return DueWork("wait", claims, depending.reevaluate)


def effect_work(claims: Claims, effects: EffectWorker) -> DueWork:
    """Return the worker for undos, hooks and webhooks."""
    return DueWork("effects", claims, effects.perform, at_once_max=EFFECTS_AT_ONCE_MAX)

"""Claims of this process on due work, renewed while the work is in progress."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from application.concurrency.tasks import with_timeout
from application.coordination.coordination import ClaimKey, ClaimKind, WorkClaims
from application.coordination.lease_owner import LeaseOwner
from application.log.event_log import LogUnavailableError

PROLONG_SECONDS_MIN = 0.1
_log = logging.getLogger("spawnlog.due")


@dataclass(slots=True, eq=False)
class Claim:
    """Exclusive work on a run until `ends`, on the clock of `Claims`.

    The lease counts from before the request, because the database cannot have granted a longer one.
    """

    key: ClaimKey
    ends: float
    task: "asyncio.Task[None] | None" = None

    @property
    def run_id(self) -> UUID:
        return self.key.run_id


class Claims:
    """All claims of a process.

    Each claim lasts one lease, so other processes take over soon if this one dies. Claims of work
    in progress are renewed together. If a claim has expired, its work is cancelled, because another
    process may have started it. `now` is a monotonic clock.
    """

    def __init__(
        self,
        coordination: WorkClaims,
        holder: LeaseOwner,
        *,
        lease_seconds: float,
        now: Callable[[], float],
    ) -> None:
        self._now = now
        self._coordination = coordination
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._under_way: dict[ClaimKey, Claim] = {}

    async def take(self, kind: ClaimKind, limit: int) -> Sequence[Claim]:
        """Claim at most `limit` runs with due work of this kind."""
        holder, ends = self._holder.name, self._now() + self._lease_seconds
        run_ids = await self._coordination.claim(
            kind, holder, limit=limit, lease_seconds=self._lease_seconds
        )
        return [Claim(ClaimKey(kind, run_id, holder), ends) for run_id in run_ids]

    def renew_while(self, claim: Claim, task: "asyncio.Task[None]") -> None:
        """Renew a claim until the task is done, or cancel the task if the claim is lost."""
        claim.task = task
        self._under_way[claim.key] = claim
        task.add_done_callback(lambda _: self._forget(claim))

    async def give_up(self, claim: Claim) -> None:
        """Release a claim, whether its work is done or left to another process."""
        self._forget(claim)
        await self._coordination.release([claim.key])

    async def prolong(self) -> None:
        """Renew the claims of all work in progress.

        Raises:
            LogUnavailableError: If the database does not answer.
        """
        began = self._now()
        self._cancel_expired(began)
        claims = [claim for claim in self._under_way.values() if claim.ends > began]
        if not claims:
            return
        left = min(claim.ends for claim in claims) - began
        try:
            # A silent database must not hide that a claim has expired.
            keys = await with_timeout(
                self._coordination.prolong(
                    [claim.key for claim in claims], lease_seconds=self._lease_seconds
                ),
                max(left, PROLONG_SECONDS_MIN),
            )
        except TimeoutError as silent:
            raise LogUnavailableError("the database does not respond") from silent
        else:
            for claim in claims:
                claim.ends = began + self._lease_seconds if claim.key in keys else began
        finally:
            self._cancel_expired(self._now())

    def _cancel_expired(self, now: float) -> None:
        """Cancel work whose claim has expired. Work that ignores the cancellation is cancelled
        again next time."""
        for claim in self._under_way.values():
            if claim.ends <= now and claim.task is not None:
                kind, run_id = claim.key.kind, claim.run_id
                _log.warning("%s of run %s is canceled: its claim has expired", kind, run_id)
                claim.task.cancel()

    def _is_under_way(self, claim: Claim) -> bool:
        return self._under_way.get(claim.key) is claim

    def _forget(self, claim: Claim) -> None:
        if self._is_under_way(claim):
            del self._under_way[claim.key]

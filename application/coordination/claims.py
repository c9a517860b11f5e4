"""The claims of this process on work that is due, kept up while somebody is at it."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from application.concurrency.tasks import with_timeout
from application.coordination.coordination import ClaimKey, ClaimKind, WorkClaims
from application.coordination.holder import Holder
from application.log.event_log import LogUnavailable

PROLONG_SECONDS_MIN = 0.1
_log = logging.getLogger("spawnlog.due")


@dataclass(slots=True, eq=False)
class Claim:
    """A run that nobody else works on until `ends`, on the clock of `Claims`. It counts
    from before it was asked for: the database's clock cannot have given more than that."""

    key: ClaimKey
    ends: float
    task: "asyncio.Task[None] | None" = None

    @property
    def run_id(self) -> UUID:
        """The run."""
        return self.key.run_id


class Claims:
    """One a process. Each claim is for one lease, so that others take over that soon from a process
    that died. Those of work that is under way are prolonged together; work whose claim is over is
    broken off, as somebody else may be at it. `now` is a clock that never goes back."""

    def __init__(
        self,
        coordination: WorkClaims,
        holder: Holder,
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
        """Claim at most so many runs with such work that is due."""
        holder, ends = self._holder.name, self._now() + self._lease_seconds
        run_ids = await self._coordination.claim(
            kind, holder, limit=limit, lease_seconds=self._lease_seconds
        )
        return [Claim(ClaimKey(kind, run_id, holder), ends) for run_id in run_ids]

    def renew_while(self, claim: Claim, task: "asyncio.Task[None]") -> None:
        """Prolong a claim until this task is done, or end the task when that cannot be."""
        claim.task = task
        self._under_way[claim.key] = claim
        task.add_done_callback(lambda _: self._forget(claim))

    async def give_up(self, claim: Claim) -> None:
        """It is done, or is to be done by whoever comes next."""
        self._forget(claim)
        await self._coordination.release([claim.key])

    async def prolong(self) -> None:
        """Prolong all that is under way. Raises `LogUnavailable` when the database is away."""
        began = self._now()
        self._break_off(began)
        claims = [one for one in self._under_way.values() if one.ends > began]
        if not claims:
            return
        left = min(claim.ends for claim in claims) - began
        try:
            # A database that does not answer at all must not hide that a claim is over.
            keys = await with_timeout(
                self._coordination.prolong(
                    [claim.key for claim in claims], lease_seconds=self._lease_seconds
                ),
                max(left, PROLONG_SECONDS_MIN),
            )
        except TimeoutError as silent:
            raise LogUnavailable("the database does not answer") from silent
        else:
            for claim in claims:
                claim.ends = began + self._lease_seconds if claim.key in keys else began
        finally:
            self._break_off(self._now())

    def _break_off(self, now: float) -> None:
        """Whatever does not hear of it at once is told again the next time."""
        for claim in self._under_way.values():
            if claim.ends <= now and claim.task is not None:
                kind, run_id = claim.key.kind, claim.run_id
                _log.warning("%s of run %s is broken off: its claim is over", kind, run_id)
                claim.task.cancel()

    def _is_under_way(self, claim: Claim) -> bool:
        return self._under_way.get(claim.key) is claim

    def _forget(self, claim: Claim) -> None:
        if self._is_under_way(claim):
            del self._under_way[claim.key]

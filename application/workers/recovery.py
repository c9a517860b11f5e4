"""Takes over what a holder left behind when it died.

A preparation goes on from its record. A run that was claimed but never started is claimed again:
nothing of it has executed. A run that had started is ended as interrupted; it is never executed
a second time. One that is executed outside ends as well, whether it had started or not: its
executor is gone, and what that one did is not known.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from application.concurrency.tasks import wait_or_cancel
from application.coordination.coordination import Coordination, LostRun
from application.coordination.holder import Holder
from application.execution.end import RunFinalizer
from application.execution.execute import RunExecutor
from application.execution.external import HOLDER_PREFIX, LEASE_SECONDS_MAX, ExternalRuns
from application.log.event_log import LogUnavailable
from application.log.unit_of_work import UnitOfWork
from application.ports.runtimes import RuntimeEnd
from application.spawn.prepare import RunPreparer
from domain.run.commands import ClaimRun
from domain.run.facts import EXTERNAL_LANE
from domain.run.lifecycle import PREPARING
from domain.run.state import Run
from domain.values.refusals import Rejected

LOST_RUNS_MAX = 200
DEAF_SECONDS_MAX = 10.0
"""A server that could not look for longer than this could not have taken a sign of life either."""
_log = logging.getLogger("spawnlog.recovering")


class RunRecovery:
    """Finds runs without a living holder, and does for each what its record allows."""

    def __init__(
        self,
        work: UnitOfWork,
        coordination: Coordination,
        preparing: RunPreparer,
        executing: RunExecutor,
        sealing: RunFinalizer,
        external: ExternalRuns,
        *,
        holder: Holder,
        lease_seconds: float,
    ) -> None:
        self._work = work
        self._coordination = coordination
        self._preparing = preparing
        self._executing = executing
        self._sealing = sealing
        self._external = external
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._absent_since: dict[str, float] = {}
        self._idle_since: dict[UUID, float] = {}
        self._under_way: dict[UUID, asyncio.Task[None]] = {}
        self._heard_at = -math.inf
        self._hears_since = 0.0

    async def recover(self) -> int:
        """Look once; gives how many runs were taken over."""
        lost = await self._coordination.lost_runs(limit=LOST_RUNS_MAX)
        hears_seconds = self._hears_seconds()
        self._forget_present({one.holder for one in lost if one.absent})
        taken = [one for one in lost if self._is_gone(one)] + await self._dropped_runs()
        for one in taken:
            if one.run_id not in self._under_way:
                task = asyncio.create_task(
                    self._take_over(one, hears_seconds), name=f"recover {one.run_id}"
                )
                self._under_way[one.run_id] = task
                task.add_done_callback(self._done(one.run_id))
        return len(taken)

    def _hears_seconds(self) -> float:
        """For how long a sign of life could have been taken here, without a gap until now."""
        now = time.monotonic()
        if now - self._heard_at > DEAF_SECONDS_MAX:
            self._hears_since = now
        self._heard_at = now
        return now - self._hears_since

    def _done(self, run_id: UUID) -> Callable[[object], None]:
        def forget(_: object) -> None:
            self._under_way.pop(run_id, None)

        return forget

    async def wait_idle(self, seconds: float) -> None:
        """Wait until what was taken over is dealt with, so long at most."""
        await wait_or_cancel(self._under_way.values(), seconds)

    async def _dropped_runs(self) -> list[LostRun]:
        """Runs that are held under our own name while nothing works on them, as after a failure in
        the middle: seen so for the time of a lease, they are taken over like any other."""
        held = await self._coordination.held_runs(self._holder.name, limit=LOST_RUNS_MAX)
        busy = self._executing.held | self._preparing.under_way | self._under_way.keys()
        idle = {one.run_id: one for one in held if one.run_id not in busy}
        now = time.monotonic()
        self._idle_since = {run_id: self._idle_since.get(run_id, now) for run_id in idle}
        return [
            one
            for run_id, one in idle.items()
            if now - self._idle_since[run_id] >= self._lease_seconds
        ]

    def _is_gone(self, lost: LostRun) -> bool:
        """A holder whose lease expired is gone. One without any row may only have lost it with
        the table; it gets the time of one lease to write it again, an executor outside that of the
        longest one that it may have asked for."""
        if lost.holder == self._holder.name:
            return False
        if not lost.absent:
            return True
        since = self._absent_since.setdefault(lost.holder, time.monotonic())
        is_outside = lost.holder.startswith(HOLDER_PREFIX)
        lease_seconds = LEASE_SECONDS_MAX if is_outside else self._lease_seconds
        return time.monotonic() - since >= lease_seconds

    def _forget_present(self, absent: set[str]) -> None:
        for holder in list(self._absent_since):
            if holder not in absent:
                del self._absent_since[holder]

    async def _take_over(self, lost: LostRun, hears_seconds: float) -> None:
        try:
            run = await self._work.run(lost.run_id)
            if run.epoch != lost.epoch:
                return
            _log.warning("run %s (%s) lost its holder %s", run.run_id, run.stage, lost.holder)
            if run.stage in PREPARING:
                reason = f"holder {lost.holder} is gone"
                await self._preparing.resume(run, self._holder.name, reason)
            elif run.lane == EXTERNAL_LANE:
                # A lease that ran out while this server was away says nothing of its executor.
                could_be_heard = lost.absent or lost.overdue_seconds <= hears_seconds
                await self._external.end_lost(run, lost.until, could_be_heard=could_be_heard)
            elif run.stage == "queued":
                await self._claim_again(run)
            elif run.stage == "started":
                await self._interrupt(run, lost)
        except Rejected as rejected:
            _log.info("run %s was taken over by another server: %s", lost.run_id, rejected)
        except LogUnavailable as unavailable:
            _log.warning("run %s is taken over later: %s", lost.run_id, unavailable)
        except Exception:
            _log.exception("run %s cannot be taken over", lost.run_id)

    async def _claim_again(self, run: Run) -> None:
        command = ClaimRun(holder=self._holder.name, lost_epoch=run.epoch)
        appended = await self._work.record(run, (command,))
        self._executing.take(appended.runs[run.run_id])

    async def _interrupt(self, run: Run, lost: LostRun) -> None:
        end = RuntimeEnd(
            outcome="error",
            reason="interrupted",
            error=f"interrupted: the server that held this run is gone ({lost.holder})",
        )
        lease = timedelta(seconds=self._lease_seconds)
        renewed_at = lost.until - lease if lost.until is not None else None
        await self._sealing.end_in_its_stead(run, end, renewed_at)

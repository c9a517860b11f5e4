"""Recovery: takes over the work of a holder that died.

- A preparation continues from its record.
- A run that was claimed but not started is claimed again, since its runtime never started.
- A started run is ended as interrupted. It is never executed a second time.
- An external run is ended, started or not, because its executor is gone and its progress unknown.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from application.concurrency.tasks import wait_or_cancel
from application.coordination.coordination import Coordination, LostRun
from application.coordination.lease_owner import LeaseOwner
from application.execution.end import RunFinalizer
from application.execution.execute import RunExecutor
from application.execution.external import HOLDER_PREFIX, LEASE_SECONDS_MAX, ExternalRuns
from application.log.event_log import LogUnavailableError
from application.log.unit_of_work import UnitOfWork
from application.ports.runtimes import RuntimeEnd
from application.spawn.prepare import SpawnPreparer
from domain.run.commands import ClaimRun
from domain.run.facts import EXTERNAL_LANE
from domain.run.lifecycle import PREPARING
from domain.run.state import Run
from domain.values.refusals import Rejected

LOST_RUNS_MAX = 200
GAP_SECONDS_MAX = 10.0
"""After a gap this long in the search for lost runs, the server may also have missed executors'
renewals."""
GAPS_PER_LEASE = 2
_log = logging.getLogger("spawnlog.recovering")


class RunRecovery:
    """Recovery of runs without a live holder. Each continues or ends according to its record."""

    def __init__(
        self,
        work: UnitOfWork,
        coordination: Coordination,
        preparing: SpawnPreparer,
        executing: RunExecutor,
        sealing: RunFinalizer,
        external: ExternalRuns,
        *,
        holder: LeaseOwner,
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
        self._gap_seconds_max = min(GAP_SECONDS_MAX, lease_seconds / GAPS_PER_LEASE)
        self._looked_at: datetime | None = None
        self._looks_since = datetime.max.replace(tzinfo=UTC)
        self._gap_ended_at: datetime | None = None

    async def recover(self) -> int:
        """Search once. Return the number of runs taken over."""
        found = await self._coordination.lost_runs(limit=LOST_RUNS_MAX)
        self._note_look(found.at)
        self._forget_present({lost.holder for lost in found.runs if lost.absent})
        gone = [lost for lost in found.runs if self._is_gone(lost, found.at)]
        taken = await self._with_closed_leases(gone) + await self._dropped_runs()
        for lost in taken:
            if lost.run_id not in self._under_way:
                task = asyncio.create_task(
                    self._take_over(lost, self._looks_since), name=f"recover {lost.run_id}"
                )
                self._under_way[lost.run_id] = task
                task.add_done_callback(self._done(lost.run_id))
        return len(taken)

    def _note_look(self, now: datetime) -> None:
        """Note since when this server has searched without a gap, by the database's clock.

        That clock shows a gap whatever its cause: this process, the machine, the database or its
        clock.
        """
        before, self._looked_at = self._looked_at, now
        if before is None:
            self._looks_since = now
        elif not timedelta(0) <= now - before <= timedelta(seconds=self._gap_seconds_max):
            self._looks_since = self._gap_ended_at = now

    async def _with_closed_leases(self, gone: Sequence[LostRun]) -> list[LostRun]:
        """Return the runs whose holders can no longer renew their leases."""
        holders = {lost.holder for lost in gone if not _is_external(lost)}
        closed: Collection[str] = ()
        if holders:
            closed = await self._coordination.close_leases(sorted(holders))
        return [lost for lost in gone if _is_external(lost) or lost.holder in closed]

    def _done(self, run_id: UUID) -> Callable[[object], None]:
        def forget(_: object) -> None:
            self._under_way.pop(run_id, None)

        return forget

    async def wait_idle(self, seconds: float) -> None:
        """Wait up to `seconds` for takeovers in progress, then cancel the rest."""
        await wait_or_cancel(self._under_way.values(), seconds)

    async def _dropped_runs(self) -> list[LostRun]:
        """Return runs held under this process's name that nothing here has worked on for one lease.

        That happens after an internal failure. They are taken over like any other lost run.
        """
        held = await self._coordination.held_runs(self._holder.name, limit=LOST_RUNS_MAX)
        busy = self._executing.held | self._preparing.under_way | self._under_way.keys()
        idle = {lost.run_id: lost for lost in held if lost.run_id not in busy}
        now = time.monotonic()
        self._idle_since = {run_id: self._idle_since.get(run_id, now) for run_id in idle}
        return [
            lost
            for run_id, lost in idle.items()
            if now - self._idle_since[run_id] >= self._lease_seconds
        ]

    def _is_gone(self, lost: LostRun, now: datetime) -> bool:
        """Return True if the holder has had enough time to renew its lease, and did not.

        A holder without a row may have lost it with the table. It gets one lease to write it again;
        an executor gets the longest lease that it may have requested.

        A server whose lease expired while this one could not search also gets one lease. The cause
        (a closed lid, an absent database) may have kept it from renewing too.
        """
        if lost.holder == self._holder.name:
            return False
        if lost.absent:
            since = self._absent_since.setdefault(lost.holder, time.monotonic())
            lease_seconds = LEASE_SECONDS_MAX if _is_external(lost) else self._lease_seconds
            return time.monotonic() - since >= lease_seconds
        if _is_external(lost) or self._gap_ended_at is None or lost.until is None:
            return True
        chance_ends = self._gap_ended_at + timedelta(seconds=self._lease_seconds)
        return lost.until > self._gap_ended_at or now >= chance_ends

    def _forget_present(self, absent: set[str]) -> None:
        for holder in list(self._absent_since):
            if holder not in absent:
                del self._absent_since[holder]

    async def _take_over(self, lost: LostRun, looks_since: datetime) -> None:
        try:
            run = await self._work.run(lost.run_id)
            if run.epoch != lost.epoch:
                return
            _log.warning("run %s (%s) lost its holder %s", run.run_id, run.stage, lost.holder)
            if run.stage in PREPARING:
                reason = f"holder {lost.holder} is gone"
                await self._preparing.resume(run, self._holder.name, reason)
            elif run.lane == EXTERNAL_LANE:
                # A lease that expired while this server was away does not mean that the executor is
                # gone.
                could_be_heard = lost.until is None or lost.until >= looks_since
                await self._external.end_lost(run, lost.until, could_be_heard=could_be_heard)
            elif run.stage == "queued":
                await self._claim_again(run)
            elif run.stage == "started":
                await self._interrupt(run, lost)
        except Rejected as rejected:
            _log.info("another server has taken over run %s: %s", lost.run_id, rejected)
        except LogUnavailableError as unavailable:
            _log.warning("run %s will be taken over later: %s", lost.run_id, unavailable)
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
        await self._sealing.end_for_lost_holder(run, end, renewed_at=renewed_at)


def _is_external(lost: LostRun) -> bool:
    return lost.holder.startswith(HOLDER_PREFIX)

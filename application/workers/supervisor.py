"""Runs a server's background work: lease, dispatch, announcements, archives, effects, recovery."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from application.concurrency import tasks
from application.concurrency.periodic import PeriodicTask
from application.concurrency.running_time import RunningTime
from application.concurrency.tasks import with_timeout
from application.coordination.claims import Claims
from application.coordination.coordination import Coordination
from application.coordination.lease_owner import LeaseOwner
from application.delivery.announce import Announcer
from application.delivery.archive import Archiver
from application.delivery.effects import EffectWorker
from application.delivery.transcript_files import TranscriptFileWriter
from application.execution.dispatch import Dispatcher
from application.execution.execute import RunExecutor
from application.execution.external import ExternalRuns
from application.log.event_log import LogUnavailableError, Tail
from application.session.continue_session import SessionContinuation
from application.spawn.dependencies import DependencyWaits
from application.spawn.prepare import SpawnPreparer
from application.workers.due import (
    DueWork,
    announcement_work,
    archive_work,
    continuation_work,
    effect_work,
    wait_work,
)
from application.workers.reactions import Reactions, WokenWork
from application.workers.recovery import RunRecovery

DISPATCH_SECONDS = 1.0
SWEEP_SECONDS = 60.0
UNCLAIMED_SECONDS = 2.0
FINISH_SECONDS_MAX = 3.0
"""Time per kind of due work at shutdown, which must be short."""


FORGET_SECONDS = 3600.0
RENEW_SECONDS_MIN = 0.1
STORED_ANSWER_DAYS = 7
_log = logging.getLogger("spawnlog.conducting")


@dataclass(frozen=True, slots=True)
class Workers:
    """The background workers. `sweeping` deletes staged files that are no longer needed."""

    preparing: SpawnPreparer
    continuing: SessionContinuation
    dispatching: Dispatcher
    executing: RunExecutor
    external: ExternalRuns
    announcing: Announcer
    archiving: Archiver
    depending: DependencyWaits
    recovering: RunRecovery
    effects: EffectWorker
    transcript_files: TranscriptFileWriter
    sweeping: Callable[[], Awaitable[object]]


class Supervisor:
    """The supervisor of a process.

    Args:
        follow_configuration: Called when another configuration was activated.
        alive: Called whenever the lease was renewed.

    Attributes:
        url: Recorded with the lease.
    """

    def __init__(
        self,
        workers: Workers,
        coordination: Coordination,
        tail: Tail,
        *,
        holder: LeaseOwner,
        lease_seconds: float,
        follow_configuration: Callable[[int], Awaitable[None]],
        alive: Callable[[], None],
    ) -> None:
        self._workers = workers
        self._coordination = coordination
        self._tail = tail
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._alive = alive
        self._running_time = RunningTime(lease_seconds)
        self._renewed = self._running_time.now()
        self.url: str | None = None
        self._dispatch = PeriodicTask("dispatch", workers.dispatching.dispatch, DISPATCH_SECONDS)
        claims = Claims(
            coordination, holder, lease_seconds=lease_seconds, now=self._running_time.now
        )
        self._announce = announcement_work(claims, workers.announcing)
        self._archive = archive_work(claims, workers.archiving)
        self._wait = wait_work(claims, workers.depending)
        self._continue = continuation_work(claims, workers.continuing)
        self._effect = effect_work(claims, workers.effects)
        self._prolong = PeriodicTask("claims", claims.prolong, lease_seconds / 3)
        self._look = PeriodicTask(
            "running time", self._look_at_time, self._running_time.look_seconds
        )
        self._renew = PeriodicTask("lease", self._renew_lease, lease_seconds / 3)
        self._sweep = PeriodicTask("staged files", workers.sweeping, SWEEP_SECONDS)
        self._recover = PeriodicTask(
            "recover", workers.recovering.recover, min(1.0, lease_seconds / 4)
        )
        self._unclaimed = PeriodicTask(
            "unclaimed runs", workers.external.end_unclaimed, UNCLAIMED_SECONDS
        )
        self._forget = PeriodicTask("forget", self._forget_answers, FORGET_SECONDS)
        self._reactions = Reactions(
            WokenWork(
                dispatch=self._dispatch,
                announce=self._announce,
                archive=self._archive,
                effects=self._effect,
                wait=self._wait,
                continue_sessions=self._continue,
            ),
            workers.executing,
            workers.preparing,
            tail,
            workers.dispatching.waiting,
            follow_configuration,
        )
        self._following: asyncio.Task[None] | None = None

    async def join(self) -> None:
        """Take the lease. Nothing may be held under the holder's name before this."""
        await self._renew_lease()

    def start(self) -> None:
        self._following = asyncio.create_task(self._follow(), name="conductor")
        for repeating in self._all():
            repeating.start()

    async def stop_claiming(self) -> None:
        """Claim no more runs, because the process is about to end."""
        self._workers.dispatching.close()
        await self._dispatch.close()
        await self._recover.close()

    async def wait_idle(self, seconds: float) -> None:
        """Wait up to `seconds` for runs taken over from other servers."""
        await self._workers.recovering.wait_idle(seconds)

    async def finish_due(self) -> None:
        """Do all work that is due now, for the last time. Each kind has its own timeout."""
        for due in (self._continue, self._announce, self._archive, self._effect):
            try:
                # Calls that time out are repeated after the next start.
                await with_timeout(due.run_all_due(), FINISH_SECONDS_MAX)
            except (LogUnavailableError, TimeoutError) as away:
                _log.warning("%s: due work is left for the next start: %s", due.kind, away)
        await self._workers.transcript_files.finish(FINISH_SECONDS_MAX)

    async def close(self) -> None:
        """Stop all work and give up the lease. Nothing may be held by then."""
        if self._following is not None:
            await tasks.cancel_all([self._following])
        for repeating in self._all():
            await repeating.close()
        with contextlib.suppress(LogUnavailableError, TimeoutError):
            await with_timeout(self._coordination.leave(self._holder.name), FINISH_SECONDS_MAX)

    def _all(self) -> tuple[PeriodicTask | DueWork | TranscriptFileWriter, ...]:
        return (
            self._look,
            self._renew,
            self._dispatch,
            self._announce,
            self._archive,
            self._effect,
            self._wait,
            self._continue,
            self._workers.transcript_files,
            # Closed after the work whose claims it renews.
            self._prolong,
            self._sweep,
            self._recover,
            self._unclaimed,
            self._forget,
        )

    async def _follow(self) -> None:
        # If the log cannot be followed, the tail reports it and the server ends.
        with contextlib.suppress(LogUnavailableError):
            async for events in self._tail.follow(after=self._tail.position):
                await self._reactions.take(events)

    async def _look_at_time(self) -> None:
        self._running_time.look()

    async def _renew_lease(self) -> None:
        """Renew the lease.

        It counts from before the request, because the database cannot have granted a longer one,
        and only running time counts: after a suspension, the database says whether another server
        took the lease over.
        """
        began = self._running_time.now()
        left = self._renewed + self._lease_seconds - began
        try:
            # A silent database must not hide that the lease has expired.
            ours = await with_timeout(
                self._coordination.renew(
                    self._holder.name, url=self.url, lease_seconds=self._lease_seconds
                ),
                max(left, RENEW_SECONDS_MIN),
            )
        except (LogUnavailableError, TimeoutError) as away:
            if self._running_time.now() - self._renewed >= self._lease_seconds:
                await self._abandon_runs("it could not be renewed in time")
            if isinstance(away, TimeoutError):
                raise LogUnavailableError("the database does not respond") from away
            raise
        if not ours:
            await self._abandon_runs("another server took it over")
            return
        self._renewed = began
        self._alive()

    async def _abandon_runs(self, why: str) -> None:
        """Kill all held runs without recording anything, and continue under a new holder name.

        Recovery, on this or another server, then decides about those runs.
        """
        _log.error("the lease of %s is lost: %s", self._holder.name, why)
        await self._workers.executing.abandon_all()
        self._holder.replace_name()
        self._renewed = self._running_time.now()
        self._renew.notify()

    async def _forget_answers(self) -> None:
        await self._coordination.forget_old_answers(days=STORED_ANSWER_DAYS)

"""Keeps a server process at work: its lease, its lanes, announcements, archives, recovery."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from application import cancelling, due_kinds
from application.announcing import Announcing
from application.archiving import Archiving
from application.claims import Claims
from application.continuing import Continuing
from application.depending import Awaited, Depending
from application.dispatching import Dispatching
from application.due_work import DueWork
from application.envelope import RecordedEvent
from application.executing import Executing
from application.holder import Holder
from application.ports.coordination import Coordination
from application.ports.event_log import LogUnavailable, Tail
from application.preparing import Preparing
from application.recovering import Recovering
from application.repeating import Repeating
from application.telling_hooks import TellingHooks
from application.timely import timely
from application.undoing import Undoing
from domain.config_events import ConfigurationActivated
from domain.run.continuation_events import ArchiveScheduled
from domain.run.events import (
    DescendantsSettled,
    RunAnnounced,
    RunArchived,
    RunEnded,
    RunQueued,
    StopRequested,
)
from domain.run.request_events import SpawnRefused
from domain.run.steps import STEP_ORDER

DISPATCH_SECONDS = 1.0
SWEEP_SECONDS = 60.0
FINISH_SECONDS_MAX = 3.0
"""For each kind of what is due: a server that was told to stop has not long for all of them."""

FORGET_SECONDS = 3600.0
RENEW_SECONDS_MIN = 0.1
ANSWERS_KEPT_DAYS = 7

_UNDONE_AFTER = (RunEnded, RunAnnounced, RunArchived)
"""What a preparation made may be due for undoing then."""

_log = logging.getLogger("spawnlog.conducting")


@dataclass(frozen=True, slots=True)
class Crew:
    """Those who do the work. `sweeping` removes files that were set aside and are not wanted any
    more."""

    preparing: Preparing
    continuing: Continuing
    dispatching: Dispatching
    executing: Executing
    announcing: Announcing
    archiving: Archiving
    depending: Depending
    recovering: Recovering
    undoing: Undoing
    telling: TellingHooks
    sweeping: Callable[[], Awaitable[object]]


class Conducting:
    """One a process. `url` is recorded with the lease; `follow_configuration` is called when
    another configuration was activated, `alive` whenever the lease was renewed."""

    def __init__(
        self,
        crew: Crew,
        coordination: Coordination,
        tail: Tail,
        *,
        holder: Holder,
        lease_seconds: float,
        follow_configuration: Callable[[int], Awaitable[None]],
        alive: Callable[[], None],
    ) -> None:
        self._crew = crew
        self._coordination = coordination
        self._tail = tail
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._follow_configuration = follow_configuration
        self._alive = alive
        self._renewed = time.monotonic()
        self.url: str | None = None
        self._dispatch = Repeating("dispatch", crew.dispatching.dispatch, DISPATCH_SECONDS)
        claims = Claims(coordination, holder, lease_seconds=lease_seconds)
        self._announce = due_kinds.announcements(claims, crew.announcing)
        self._archive = due_kinds.archives(claims, crew.archiving)
        self._wait = due_kinds.waits(claims, crew.depending)
        self._awaited = Awaited()
        self._effect = due_kinds.effects(claims, crew.undoing, crew.telling)
        self._prolong = Repeating("claims", claims.prolong, lease_seconds / 3)
        self._renew = Repeating("lease", self._renew_lease, lease_seconds / 3)
        self._sweep = Repeating("staged files", crew.sweeping, SWEEP_SECONDS)
        self._recover = Repeating("recover", crew.recovering.recover, min(1.0, lease_seconds / 4))
        self._forget = Repeating("forget", self._forget_answers, FORGET_SECONDS)
        self._following: asyncio.Task[None] | None = None

    async def join(self) -> None:
        """Take the lease: before this nothing may be held under this name."""
        await self._renew_lease()

    def start(self) -> None:
        """Begin to work."""
        self._following = asyncio.create_task(self._follow(), name="conductor")
        for repeating in self._all():
            repeating.start()

    async def stop_claiming(self) -> None:
        """Take no new runs: the process is about to end."""
        await self._dispatch.close()
        await self._recover.close()

    async def settle(self, seconds: float) -> None:
        """Wait for what was taken over from others, so long at most."""
        await self._crew.recovering.settle(seconds)

    async def finish_due(self) -> None:
        """Announce, archive, undo and tell what is due now, for the last time; each has its time
        for it, whatever became of the one before."""
        for due in (self._announce, self._archive, self._effect):
            try:
                # What a hook does not take in time is done after the next start.
                await timely(due.work_off(), FINISH_SECONDS_MAX)
            except (LogUnavailable, TimeoutError) as away:
                _log.warning("%s: what is due is left to the next start: %s", due.kind, away)

    async def close(self) -> None:
        """End all work and give the lease up. Nothing may be held by then."""
        if self._following is not None:
            await cancelling.end([self._following])
        for repeating in self._all():
            await repeating.close()
        with contextlib.suppress(LogUnavailable):
            await self._coordination.leave(self._holder.name)

    def _all(self) -> tuple[Repeating | DueWork, ...]:
        return (
            self._renew,
            self._dispatch,
            self._announce,
            self._archive,
            self._effect,
            self._wait,
            # Until there is no work left whose claims it could keep up.
            self._prolong,
            self._sweep,
            self._recover,
            self._forget,
        )

    async def _follow(self) -> None:
        # A log that cannot be followed ends the server; whoever follows it says why.
        with contextlib.suppress(LogUnavailable):
            async for recorded in self._tail.follow(after=self._tail.position):
                try:
                    await self._heed(recorded)
                except Exception:
                    # The next event must be heeded whatever became of this one.
                    _log.exception("event %d was not heeded", recorded.envelope.position)

    async def _heed(self, recorded: RecordedEvent) -> None:
        run_id = recorded.envelope.provenance.run_id
        if isinstance(recorded.event, _UNDONE_AFTER) or self._crew.telling.is_called_by(
            recorded.event
        ):
            self._effect.wake()
        if self._awaited.is_met_by(recorded):
            self._wait.wake()
        match recorded.event:
            case RunQueued():
                self._dispatch.wake()
            case RunEnded():
                self._dispatch.wake()
                self._announce.wake()
            case DescendantsSettled():
                self._announce.wake()
            case RunAnnounced() | ArchiveScheduled():
                self._archive.wake()
            case StopRequested() if run_id is not None:
                self._crew.executing.stop(run_id)
            case SpawnRefused() if run_id is not None:
                self._crew.preparing.interrupt(run_id)
                if recorded.event.step in STEP_ORDER:
                    self._effect.wake()
            case ConfigurationActivated():
                await self._follow_configuration(recorded.event.revision)
            case _:
                pass

    async def _renew_lease(self) -> None:
        """Prolong the lease. It counts from before the question was asked: the database's clock
        cannot have given more than that."""
        asked = time.monotonic()
        left = self._renewed + self._lease_seconds - asked
        try:
            # A database that does not answer at all must not hide that the lease has run out.
            ours = await timely(
                self._coordination.renew(
                    self._holder.name, url=self.url, lease_seconds=self._lease_seconds
                ),
                max(left, RENEW_SECONDS_MIN),
            )
        except (LogUnavailable, TimeoutError) as away:
            if time.monotonic() - self._renewed >= self._lease_seconds:
                await self._let_go("it could not be renewed in time")
            if isinstance(away, TimeoutError):
                raise LogUnavailable("the database does not answer") from away
            raise
        if not ours:
            await self._let_go("it had expired")
            return
        self._renewed = asked
        self._alive()

    async def _let_go(self, why: str) -> None:
        """Kill what is held, record nothing more of it, and go on under another name: whoever
        finds those runs without a holder decides what becomes of them, this process included."""
        _log.error("the lease of %s is lost: %s", self._holder.name, why)
        await self._crew.executing.let_go()
        self._holder.begin_anew()
        self._renewed = time.monotonic()
        self._renew.wake()

    async def _forget_answers(self) -> None:
        await self._coordination.forget_old_answers(days=ANSWERS_KEPT_DAYS)

"""Preparation of the runs of a spawn, from admission to their lanes or to refusal.

A single spawn is a batch of one. The runs are prepared concurrently, each with its own record. One
append then creates all children or refuses all runs, so no child exists before every one can.

Everything continues from the record, so any process can take over after a crash. Each attempt
collects its texts again.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from uuid import UUID

from application.log.unit_of_work import RunCommands, UnitOfWork
from application.spawn.child import ChildPreparer
from application.spawn.create import create_children
from application.spawn.outcomes import DecidedSpawn, Outcome, Ready
from application.spawn.refuse import refuse_spawn
from application.spawn.request import RecordedInputs
from application.steps.preparation import CallerPresence, Refused, no_caller, refuse_erased
from application.steps.run_steps import StepRunner
from domain.run.commands import ResumePreparation
from domain.run.lifecycle import PREPARING
from domain.run.state import Run
from domain.spawn.batch import batch_members
from domain.spawn.cascade import CannotShare
from domain.spawn.dependencies import DependencyFailed
from domain.values.refusals import LostClaim, WrongStage

AT_ONCE_MAX = 8
INTERRUPTED_AGAIN_SECONDS = 0.5
_log = logging.getLogger("spawnlog.preparing")


class SpawnPreparer:
    """Preparer of the runs of spawns, at most once per run at a time.

    Stopping one run of a batch stops the whole batch.
    """

    def __init__(
        self,
        work: UnitOfWork,
        stepping: StepRunner,
        children: ChildPreparer,
    ) -> None:
        self._work = work
        self._stepping = stepping
        self.children = children
        self._callers: dict[UUID, CallerPresence] = {}

    @property
    def under_way(self) -> frozenset[UUID]:
        """Return the runs in preparation in this process."""
        return frozenset(self._callers)

    def has_waiting_caller(self, run_id: UUID) -> bool:
        """Return True if a caller may be waiting for the answer to this run's spawn. True for
        unknown runs."""
        caller_is_there = self._callers.get(run_id)
        return caller_is_there is None or caller_is_there()

    def interrupt(self, run_id: UUID) -> None:
        """Interrupt the work for a run that was refused meanwhile: its scripts and pending
        answers."""
        self._stepping.interrupt(run_id)

    async def resume(self, run: Run, holder: str, reason: str) -> None:
        """Continue the spawn of a run whose holder died.

        Raises:
            Rejected: If another process does.
        """
        members = batch_members(run)
        if run.run_id != members[0]:
            # The runs of a batch are lost together; the first one resumes all of them.
            return
        runs = [run, *[await self._work.run(member) for member in members[1:]]]
        appended = await self._work.record_all(
            [
                RunCommands(
                    member,
                    (ResumePreparation(holder=holder, lost_epoch=member.epoch, reason=reason),),
                )
                for member in runs
            ]
        )
        await self.prepare([appended.runs[member] for member in members], no_caller)

    async def prepare(
        self,
        runs: Sequence[Run],
        caller_is_there: CallerPresence,
        in_hand: Sequence[RecordedInputs] = (),
    ) -> DecidedSpawn:
        """Prepare all runs of a spawn, then queue or refuse them, and return their new states.

        If another process refused them or took them over, stop and return their current states.

        Args:
            in_hand: Known inputs of the runs, in their order, that need not be read again.
        """
        known = dict(zip((run.run_id for run in runs), in_hand, strict=False))
        with self._mark_under_way(runs, caller_is_there):
            members = _Members(self.children, self.interrupt, runs, caller_is_there, known)
            try:
                return await self._decide(runs, await members.outcomes(), members)
            except LostClaim as lost:
                _log.warning("preparation of %s: %s", runs[0].run_id, lost)
            except WrongStage:
                _log.info("preparation of %s ends: another server decided it", runs[0].run_id)
            finally:
                await members.end()
            now = tuple([await self._leave_to_others(run) for run in runs])
        return DecidedSpawn(now, None)

    @contextmanager
    def _mark_under_way(
        self, runs: Sequence[Run], caller_is_there: CallerPresence
    ) -> Iterator[None]:
        self._callers.update((run.run_id, caller_is_there) for run in runs)
        try:
            yield
        finally:
            for run in runs:
                self._callers.pop(run.run_id, None)

    async def _decide(
        self, runs: Sequence[Run], outcomes: Mapping[UUID, Outcome], members: "_Members"
    ) -> DecidedSpawn:
        """Create all children, or refuse all runs, in one append."""
        refused = next(
            (outcome for outcome in outcomes.values() if isinstance(outcome, Refused)), None
        )
        refused = refused or await self._first_erased(outcomes)
        if refused is None:
            ready = [outcome for run in runs if isinstance(outcome := outcomes[run.run_id], Ready)]
            try:
                appended = await create_children(self._work, ready)
            except (CannotShare, DependencyFailed) as cannot:
                # The record changed after everything was prepared.
                first = ready[0]
                refused = first.preparation.refuse(cannot.refusal, first.create.facts)
        if refused is not None:
            appended = await refuse_spawn(self._work, runs, outcomes, refused)
            await members.end()
            for run in runs:
                if run.run_id not in outcomes:
                    # Undo steps that the run completed meanwhile.
                    await self._leave_to_others(run)
        now = tuple(appended.runs[run.run_id] for run in runs)
        for run in now:
            # Its staged files are written or no longer needed.
            await self._stepping.drop_staged_files(run)
        return DecidedSpawn(now, appended.position)

    async def _first_erased(self, outcomes: Mapping[UUID, Outcome]) -> Refused | None:
        """Return the refusal of the first ready run whose session was erased, if any.

        Such a run could never start, and a batch is all or nothing.
        """
        for outcome in outcomes.values() if len(outcomes) > 1 else ():
            if isinstance(outcome, Ready):
                run = outcome.preparation.run
                if await self._work.text_store_or_none(run) is None:
                    return refuse_erased(run, outcome.preparation.caller_is_there)
        return None

    async def _leave_to_others(self, run: Run) -> Run:
        """Return the current state of a run that another process has decided, and undo late
        steps."""
        now = await self._work.run(run.run_id)
        if now.stage in PREPARING and now.epoch == run.epoch:
            raise RuntimeError(f"the preparation of {run.run_id} made no progress")
        await self._stepping.undo_late_steps(now)
        return now


class _Members:
    """The runs of a spawn in preparation, until all are ready or one is refused."""

    def __init__(
        self,
        children: ChildPreparer,
        interrupt: Callable[[UUID], None],
        runs: Sequence[Run],
        caller_is_there: CallerPresence,
        in_hand: Mapping[UUID, RecordedInputs],
    ) -> None:
        self._children = children
        self._interrupt = interrupt
        self._room = asyncio.Semaphore(AT_ONCE_MAX)
        self._caller_is_there = caller_is_there
        self._is_over = False
        self._tasks = {
            asyncio.create_task(
                self._prepare_one(run, in_hand.get(run.run_id)), name=f"prepare {run.run_id}"
            ): run.run_id
            for run in runs
        }

    async def _prepare_one(self, run: Run, in_hand: RecordedInputs | None) -> Outcome:
        async with self._room:
            if self._is_over:
                raise WrongStage("continue the preparation", "refused meanwhile")
            return await self._children.prepare(run, self._caller_is_there, in_hand)

    async def outcomes(self) -> dict[UUID, Outcome]:
        """Return the outcomes: all of them if all are ready, else those known once one is refused.

        Raises whatever a preparation raised.
        """
        outcomes: dict[UUID, Outcome] = {}
        pending = set(self._tasks)
        while pending and all(isinstance(outcome, Ready) for outcome in outcomes.values()):
            try:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                for task in pending:
                    task.cancel()
                raise
            outcomes.update((self._tasks[task], task.result()) for task in done)
        return outcomes

    async def end(self) -> None:
        """Interrupt the preparations still in progress, and wait for them."""
        self._is_over = True
        pending = {task for task in self._tasks if not task.done()}
        try:
            while pending:
                for task in pending:
                    self._interrupt(self._tasks[task])
                _, pending = await asyncio.wait(pending, timeout=INTERRUPTED_AGAIN_SECONDS)
        except asyncio.CancelledError:
            for task in pending:
                task.cancel()
            raise
        finally:
            await asyncio.gather(*self._tasks, return_exceptions=True)

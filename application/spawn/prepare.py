"""From the admitted runs of one spawn to as many queued runs, or to as many refusals.

A spawn of one run is a batch of one. The runs are prepared side by side, each by its own record,
and nothing of a child is there before all of them can be: their sessions come with one append, or
with one append all are refused.

Everything here goes on from what is recorded, so that it can be done by the process that took the
request or by any other after a crash. The texts of an append are collected anew for each try.
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


class RunPreparer:
    """Prepares the runs of a spawn. One at a time per run; `interrupt` breaks off what one waits
    for. Whoever stops one run of a batch stops all of it."""

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
        """Return the runs that are being prepared here now."""
        return frozenset(self._callers)

    def has_waiting_caller(self, run_id: UUID) -> bool:
        """Return whether somebody waits for the answer to a spawn, as far as is known here."""
        caller_is_there = self._callers.get(run_id)
        return caller_is_there is None or caller_is_there()

    def interrupt(self, run_id: UUID) -> None:
        """End what is under way for a run that was refused meanwhile (stopped): its scripts need
        not end, and nobody waits for an answer of somebody else."""
        self._stepping.interrupt(run_id)

    async def resume(self, run: Run, holder: str, reason: str) -> None:
        """Go on with the spawn of a run whose holder is gone. Raises `Rejected` when somebody else
        does."""
        members = batch_members(run)
        if run.run_id != members[0]:
            # They are lost together, and the first stands for all.
            return
        runs = [run, *[await self._work.run(one) for one in members[1:]]]
        appended = await self._work.record_all(
            [
                RunCommands(
                    one, (ResumePreparation(holder=holder, lost_epoch=one.epoch, reason=reason),)
                )
                for one in runs
            ]
        )
        await self.prepare([appended.runs[one] for one in members], no_caller)

    async def prepare(
        self,
        runs: Sequence[Run],
        caller_is_there: CallerPresence,
        in_hand: Sequence[RecordedInputs] = (),
    ) -> DecidedSpawn:
        """Bring all runs of a spawn to their lane, or to their refusal. Gives them as they are
        then; `in_hand` is what need not be read for them, in their order.

        When somebody else refused them or took them over, that is the end of it here.
        """
        known = dict(zip((run.run_id for run in runs), in_hand, strict=False))
        with self._mark_under_way(runs, caller_is_there):
            members = _Members(self.children, self.interrupt, runs, caller_is_there, known)
            try:
                return await self._decide(runs, await members.outcomes(), members)
            except LostClaim as lost:
                _log.warning("preparation of %s: %s", runs[0].run_id, lost)
            except WrongStage:
                _log.info("preparation of %s ends: it was decided elsewhere", runs[0].run_id)
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
        """Create all children, or refuse all, in one append."""
        refused = next((one for one in outcomes.values() if isinstance(one, Refused)), None)
        refused = refused or await self._first_erased(outcomes)
        if refused is None:
            ready = [one for run in runs if isinstance(one := outcomes[run.run_id], Ready)]
            try:
                appended = await create_children(self._work, ready)
            except (CannotShare, DependencyFailed) as cannot:
                # All was made, and then the record had changed.
                first = ready[0]
                refused = first.preparation.refuse(cannot.refusal, first.create.facts)
        if refused is not None:
            appended = await refuse_spawn(self._work, runs, outcomes, refused)
            await members.end()
            for run in runs:
                if run.run_id not in outcomes:
                    # What it came to make meanwhile is unmade.
                    await self._leave_to_others(run)
        now = tuple(appended.runs[run.run_id] for run in runs)
        for run in now:
            # What was set aside for it is where it belongs, or never will be.
            await self._stepping.drop_staged_files(run)
        return DecidedSpawn(now, appended.position)

    async def _first_erased(self, outcomes: Mapping[UUID, Outcome]) -> Refused | None:
        """Return the refusal of the first run of which nothing may be kept any more, if there is
        one. It could never start, and a batch is all or nothing."""
        for one in outcomes.values() if len(outcomes) > 1 else ():
            if isinstance(one, Ready):
                run = one.preparation.run
                if await self._work.text_store_or_none(run) is None:
                    return refuse_erased(run, one.preparation.caller_is_there)
        return None

    async def _leave_to_others(self, run: Run) -> Run:
        """Return a run about which somebody else has decided, as it is now."""
        now = await self._work.run(run.run_id)
        if now.stage in PREPARING and now.epoch == run.epoch:
            raise RuntimeError(f"the preparation of {run.run_id} made no progress")
        await self._stepping.undo_late_steps(now)
        return now


class _Members:
    """The runs of a spawn at work, each until it is ready, until one cannot be, or the others
    end."""

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
                self._one(run, in_hand.get(run.run_id)), name=f"prepare {run.run_id}"
            ): run.run_id
            for run in runs
        }

    async def _one(self, run: Run, in_hand: RecordedInputs | None) -> Outcome:
        async with self._room:
            if self._is_over:
                raise WrongStage("go on with the preparation", "refused meanwhile")
            return await self._children.prepare(run, self._caller_is_there, in_hand)

    async def outcomes(self) -> dict[UUID, Outcome]:
        """Return what came of each: of all if all are ready, else what is known once one is not.

        Raises what one of them raised.
        """
        outcomes: dict[UUID, Outcome] = {}
        pending = set(self._tasks)
        while pending and all(isinstance(one, Ready) for one in outcomes.values()):
            try:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                for task in pending:
                    task.cancel()
                raise
            outcomes.update((self._tasks[task], task.result()) for task in done)
        return outcomes

    async def end(self) -> None:
        """Stop those that are still at work as soon as they can: nobody waits for them."""
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

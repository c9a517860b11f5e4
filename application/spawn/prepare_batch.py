"""From several runs that were admitted as one to as many queued runs, or to as many refusals.

They are prepared side by side, each by its own record. Nothing of a child is there before all of
them can be: their sessions come with one append, or with one append all are refused.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from application.context.shared_context import read_shared_spawn
from application.log.answers import accepted_batch_response
from application.log.event_log import Appended, LogUnavailable
from application.log.unit_of_work import RunCommands, UnitOfWork
from application.spawn.outcomes import Erased, NotReady, Ready, revoke_ready
from application.spawn.prepare import RunPreparer
from application.spawn.refuse import refuse_batch
from application.spawn.request import RecordedInputs
from application.steps.preparation import CallerPresence, no_caller
from domain.run.commands import ResumePreparation
from domain.run.state import Run
from domain.spawn.cascade import CannotShare
from domain.spawn.dependencies import DependencyFailed
from domain.values.refusals import LostClaim, ReadAgain, WrongStage

AT_ONCE_MAX = 8
ATTEMPTS_MAX = 5
INTERRUPTED_AGAIN_SECONDS = 0.5
_log = logging.getLogger("spawnlog.batches")
PreparationOutcomes = dict[UUID, Ready | NotReady | Erased]


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """The runs as they are then, in their order, and the position of the append that decided about
    them; None when others did."""

    runs: tuple[Run, ...]
    position: int | None


class BatchPreparer:
    """Prepares batches; whoever stops one run of a batch stops all of it."""

    def __init__(self, work: UnitOfWork, preparing: RunPreparer) -> None:
        self._work = work
        self._preparing = preparing

    async def resume(self, run: Run, holder: str, reason: str) -> None:
        """Go on with the batch of a run whose holder is gone. Raises `Rejected` when somebody else
        does."""
        assert run.batch is not None
        if run.run_id != run.batch.run_ids[0]:
            # They are lost together, and the first stands for all.
            return
        runs = [await self._work.run(one) for one in run.batch.run_ids]
        appended = await self._work.record_all(
            [
                RunCommands(
                    one, (ResumePreparation(holder=holder, lost_epoch=one.epoch, reason=reason),)
                )
                for one in runs
            ]
        )
        await self.prepare([appended.runs[one.run_id] for one in runs], no_caller)

    async def prepare(
        self,
        runs: Sequence[Run],
        caller_is_there: CallerPresence,
        in_hand: Sequence[RecordedInputs] = (),
    ) -> PreparedBatch:
        """Bring all of them to their lane, or to their refusal."""
        with self._preparing.mark_under_way(runs, caller_is_there):
            work = _BatchMembers(self._preparing, runs, caller_is_there, in_hand)
            try:
                return await self._decide_batch(runs, await work.made(), work)
            except LostClaim as lost:
                _log.warning("preparation of the batch of %s: %s", runs[0].run_id, lost)
            except WrongStage:
                _log.info("the batch of %s was decided elsewhere", runs[0].run_id)
            finally:
                await work.end()
            now = tuple([await self._preparing.leave_to_others(run) for run in runs])
        return PreparedBatch(now, None)

    async def _decide_batch(
        self, runs: Sequence[Run], made: PreparationOutcomes, work: "_BatchMembers"
    ) -> PreparedBatch:
        unready = next((one for one in made.values() if not isinstance(one, Ready)), None)
        unready = unready or await self._first_erased(made)
        if unready is None:
            ready = [one for run in runs if isinstance(one := made[run.run_id], Ready)]
            try:
                appended = await self._create(ready)
            except (CannotShare, DependencyFailed) as cannot:
                unready = revoke_ready(ready[0], cannot.refusal)
        if unready is not None:
            appended = await refuse_batch(self._work, runs, made, unready)
            await work.end()
            for run in runs:
                if run.run_id not in made:
                    # What it came to make meanwhile is unmade.
                    await self._preparing.leave_to_others(run)
        now = tuple(appended.runs[run.run_id] for run in runs)
        await self._preparing.drop_staged_files(now)
        return PreparedBatch(now, appended.position)

    async def _first_erased(self, made: PreparationOutcomes) -> Erased | None:
        """The first of which nothing may be kept any more. There would be a run that can never
        start, of a batch that is all or nothing."""
        for one in made.values():
            if isinstance(one, Ready):
                preparation = one.preparation
                if await self._work.text_store_or_none(preparation.run) is None:
                    return Erased(preparation.run, preparation.caller_is_there)
        return None

    async def _create(self, ready: Sequence[Ready]) -> Appended[None]:
        """All children exist with this append, and their caller is answered by it."""
        first = ready[0].preparation.run
        assert first.batch is not None
        answer = accepted_batch_response(first.batch.batch_id, [one.told for one in ready])
        for _ in range(ATTEMPTS_MAX):
            # All ask for the same to be shared, which is once in their family.
            shared = await read_shared_spawn(self._work, first)
            changes = shared.changes if shared is not None else ()
            creates = [
                replace(one.create, shared=changes if one is ready[0] else ()) for one in ready
            ]
            asked = [
                RunCommands(one.preparation.run, (*one.before, create), one.preparation.keeper)
                for one, create in zip(ready, creates, strict=True)
            ]
            try:
                return await self._work.record_all(
                    asked,
                    spawn_answer=answer,
                    above=shared.texts if shared is not None else None,
                )
            except ReadAgain:
                # The first text of the requester's session was kept meanwhile, under its key.
                continue
        raise LogUnavailable("the requester's session changes too fast; ask again in a moment")


class _BatchMembers:
    """The members at work, each until it is ready, until one cannot be, or the others end."""

    def __init__(
        self,
        preparing: RunPreparer,
        runs: Sequence[Run],
        caller_is_there: CallerPresence,
        in_hand: Sequence[RecordedInputs],
    ) -> None:
        self._preparing = preparing
        self._room = asyncio.Semaphore(AT_ONCE_MAX)
        self._caller_is_there = caller_is_there
        self._is_over = False
        kept: Mapping[UUID, RecordedInputs] = dict(
            zip((run.run_id for run in runs), in_hand, strict=False)
        )
        self._tasks = {
            asyncio.create_task(
                self._one(run, kept.get(run.run_id)), name=f"prepare {run.run_id}"
            ): run.run_id
            for run in runs
        }

    async def _one(self, run: Run, in_hand: RecordedInputs | None) -> Ready | NotReady | Erased:
        async with self._room:
            if self._is_over:
                raise WrongStage("go on with the preparation", "refused meanwhile")
            return await self._preparing.ready(run, self._caller_is_there, in_hand)

    async def made(self) -> PreparationOutcomes:
        """What came of each: of all when all are ready, else as far as it is known when one is not.

        Raises what one of them raised.
        """
        made: PreparationOutcomes = {}
        pending = set(self._tasks)
        while pending and all(isinstance(one, Ready) for one in made.values()):
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            made.update((self._tasks[task], task.result()) for task in done)
        return made

    async def end(self) -> None:
        """Nobody waits for those that are still at work: they stop as soon as they can."""
        self._is_over = True
        pending = {task for task in self._tasks if not task.done()}
        try:
            while pending:
                for task in pending:
                    self._preparing.interrupt(self._tasks[task])
                _, pending = await asyncio.wait(pending, timeout=INTERRUPTED_AGAIN_SECONDS)
        except asyncio.CancelledError:
            for task in pending:
                task.cancel()
            raise
        finally:
            await asyncio.gather(*self._tasks, return_exceptions=True)

"""Runs the steps of a preparation: each is recorded before and after it acts."""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar
from uuid import UUID

from application.log.event_log import LogUnavailableError
from application.log.unit_of_work import UnitOfWork
from application.ports.fault_injection import FaultPoint
from application.ports.files import StagedFiles
from application.steps.preparation import Preparation
from application.steps.step import (
    STEPS_AT_ONCE_MAX,
    StepMaker,
    StepPlace,
    StepRefusedError,
    StepResult,
    UndoError,
)
from domain.run.commands import BeginStep, TakeStep
from domain.run.facts import Plan, StepName
from domain.run.lifecycle import PREPARING
from domain.run.state import Run
from domain.values.refusals import Refusal, WrongStage

Answer = TypeVar("Answer")
_log = logging.getLogger("spawnlog.stepping")


class StepRunner:
    """Planner and executor of steps."""

    def __init__(
        self,
        work: UnitOfWork,
        makers: Sequence[StepMaker],
        staged: StagedFiles,
        interruption: FaultPoint,
    ) -> None:
        self._work = work
        self._makers = {maker.name: maker for maker in makers}
        self._staged = staged
        self._interruption = interruption
        self._room = asyncio.Semaphore(STEPS_AT_ONCE_MAX)
        self._answers: dict[UUID, asyncio.Task[Any]] = {}

    def interrupt(self, run_id: UUID) -> None:
        """Stop waiting for an external answer, because the spawn was refused meanwhile.

        Effects of the request are undone from the record after its timeout.
        """
        task = self._answers.get(run_id)
        if task is not None:
            task.cancel()

    async def place(self, run: Run, plan: Plan, step: StepName) -> StepPlace | None:
        """Return where a step will act; None if there is nothing to do.

        Raises:
            StepRefusedError: If it cannot be done.
        """
        maker = self._makers.get(step)
        if maker is None:
            return None
        state = run.step(step)
        if state is None:
            return await maker.place(run, plan)
        if state.phase == "taken":
            return None
        # A recorded place is final.
        return StepPlace(state.root, state.relative, state.limit_seconds)

    async def take(
        self, preparation: Preparation, step: StepName, place: StepPlace
    ) -> tuple[Preparation, Refusal | None]:
        """Record the begin of a step, do it, and return the new preparation, with a refusal if it
        failed.

        A failed step is undone from the record.

        Raises:
            LostClaim, WrongStage: If another process has decided meanwhile. Effects of the step are
                undone from the record.
        """
        maker = self._makers[step]
        # The timeout starts when the begin is recorded, so wait for the semaphore first. Steps that
        # wait for an external answer do not take a place in it.
        async with self._room if place.root is not None else contextlib.nullcontext():
            current, is_resumed = await self._begin(preparation, maker, place)
            try:
                made = await self._make(current, maker, is_resumed=is_resumed)
            except StepRefusedError as refused:
                before = (_take_nothing(current, step),) if refused.is_nothing else ()
                return current._replace(before=before), refused.refusal
        return current._replace(before=(_take_made(current, step, made),)), None

    async def drop_staged_files(self, run: Run) -> None:
        """Delete the run's staged files, which are written or no longer needed."""
        if run.attachments is not None:
            # A later sweep deletes them if this fails.
            with contextlib.suppress(LogUnavailableError):
                await self._staged.drop(run.run_id)

    async def undo_late_steps(self, run: Run) -> None:
        """Undo file steps that finished after another process decided about the run and undid its
        steps.

        The undo is idempotent. Other steps cannot be late, because they are not undone before their
        timeout.
        """
        if run.stage in PREPARING:
            return
        for maker in reversed(self._makers.values()):
            state = run.step(maker.name)
            if state is None or state.root is None:
                continue
            undo = run.effect("undo", maker.name)
            if run.stage == "refused" or (undo is not None and undo.phase == "done"):
                try:
                    await maker.undo(run, state)
                except UndoError as failure:
                    _log.warning("run %s: step %s: %s", run.run_id, maker.name, failure)
        await self.drop_staged_files(run)

    async def _begin(
        self, preparation: Preparation, maker: StepMaker, place: StepPlace
    ) -> tuple[Preparation, bool]:
        run, name = preparation.run, maker.name
        begin = BeginStep(
            epoch=run.epoch,
            step=name,
            limit_seconds=place.limit_seconds or maker.limit_seconds,
            root=place.root,
            relative=place.relative,
        )
        appended = await self._work.record(
            run, (*preparation.before, begin), preparation.text_store
        )
        current = preparation.recorded(appended.runs[run.run_id])
        return current, run.step(name) is not None

    async def _make(
        self, preparation: Preparation, maker: StepMaker, *, is_resumed: bool
    ) -> StepResult:
        run = preparation.run
        state = run.step(maker.name)
        assert state is not None
        self._interruption("before", f"step:{maker.name}")
        making = maker.make(run, state, is_resumed=is_resumed)
        # File steps are not interrupted: they finish and are then undone.
        made = await (making if state.root is not None else self.answer(run.run_id, making))
        self._interruption("after", f"step:{maker.name}")
        return made

    async def answer(self, run_id: UUID, asking: Coroutine[Any, Any, Answer]) -> Answer:
        """Wait for an external answer.

        Raises:
            WrongStage: If the run is interrupted.
        """
        task = asyncio.create_task(asking)
        self._answers[run_id] = task
        try:
            return await task
        except asyncio.CancelledError:
            if (current := asyncio.current_task()) and current.cancelling():
                task.cancel()
                raise
            raise WrongStage("continue the preparation", "refused meanwhile") from None
        finally:
            self._answers.pop(run_id, None)


def _take_nothing(preparation: Preparation, name: StepName) -> TakeStep:
    return _take_made(preparation, name, StepResult(outcome="nothing", made=False))


def _take_made(preparation: Preparation, name: StepName, made: StepResult) -> TakeStep:
    keep = preparation.text_store.store
    return TakeStep(
        epoch=preparation.run.epoch,
        step=name,
        outcome=made.outcome,
        made=made.made,
        manifest=made.manifest,
        file_count=made.file_count,
        total_bytes=made.total_bytes,
        can_undo=made.can_undo,
        origin=keep("origin", made.origin) if made.origin is not None else None,
        fork=made.fork,
        token=keep("token", made.token) if made.token is not None else None,
    )

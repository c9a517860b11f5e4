"""Takes the steps of a preparation: each is recorded before it makes anything, and when it has."""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from application.log.event_log import LogUnavailable
from application.log.unit_of_work import UnitOfWork
from application.ports.fault_injection import FaultPoint
from application.ports.files import StagedFiles
from application.steps.preparation import Preparation, Refused
from application.steps.step import (
    STEPS_AT_ONCE_MAX,
    StepMaker,
    StepPlace,
    StepRefused,
    StepResult,
    UndoFailed,
)
from domain.run.commands import BeginStep, StartPreparation, TakeStep
from domain.run.facts import Plan, StepName, StepState
from domain.run.lifecycle import PREPARING
from domain.run.state import Run
from domain.values.refusals import WrongStage

_log = logging.getLogger("spawnlog.stepping")


@dataclass(frozen=True, slots=True)
class _PlacedStep:
    maker: StepMaker
    place: StepPlace


class StepRunner:
    """Goes through the steps in their order. A spawn that has nothing to make is not held up."""

    def __init__(
        self,
        work: UnitOfWork,
        makers: Sequence[StepMaker],
        staged: StagedFiles,
        interruption: FaultPoint,
    ) -> None:
        self._work = work
        self._makers = tuple(makers)
        self._staged = staged
        self._interruption = interruption
        self._room = asyncio.Semaphore(STEPS_AT_ONCE_MAX)
        self._answers: dict[UUID, asyncio.Task[StepResult]] = {}

    def interrupt(self, run_id: UUID) -> None:
        """The spawn was refused meanwhile: nobody waits for an answer from outside any more. What
        comes of it there is undone from the record, once whoever was asked must be through."""
        task = self._answers.get(run_id)
        if task is not None:
            task.cancel()

    async def go(
        self,
        preparation: Preparation,
        plan: Plan,
        start: StartPreparation,
    ) -> Preparation | Refused:
        """Make what the plan needs, going on from what is on record.

        `start` is recorded once. Gives the preparation as far as it is then, or the refusal of a
        step; what was made until then is undone from the record. Raises `LostClaim` and
        `WrongStage` when somebody else has decided meanwhile: what is made then is dealt with from
        the record.
        """
        run = preparation.run
        steps: list[_PlacedStep] = []
        on_record = {state.name: state for state in run.steps}
        for maker in self._makers:
            try:
                place = await self._place(run, plan, maker, on_record.get(maker.name))
            except StepRefused as refused:
                if run.child_session_key is None:
                    # The key could be known by now, so it is told.
                    preparation = replace(preparation, before=(*preparation.before, start))
                return preparation.refuse(refused.refusal, step=maker.name)
            if place is not None:
                steps.append(_PlacedStep(maker, place))
        if run.child_session_key is None:
            start = start.changed({"steps": tuple(one.maker.name for one in steps)})
            preparation = replace(preparation, before=(*preparation.before, start))
        for one in steps:
            # Its time counts from when it is on record: not before it can be made. Who waits for an
            # answer of somebody else takes the room of nobody.
            async with self._room if one.place.root is not None else contextlib.nullcontext():
                current, is_resumed = await self._begin(preparation, one)
                try:
                    made = await self._make(current, one.maker, is_resumed=is_resumed)
                except StepRefused as refused:
                    after = (_take_nothing(current, one.maker.name),) if refused.is_nothing else ()
                    failed = replace(current, before=after)
                    return failed.refuse(refused.refusal, step=one.maker.name)
            preparation = replace(current, before=(_take_made(current, one.maker.name, made),))
        return preparation

    async def has_nothing_to_make(self, run: Run, plan: Plan) -> bool:
        """Whether no step of a run, of which none was begun, has anything to do."""
        for maker in self._makers:
            try:
                if await maker.place(run, plan) is not None:
                    return False
            except StepRefused:
                return False
        return True

    async def drop_staged_files(self, run: Run) -> None:
        """The files are where they belong, or never will be."""
        if run.attachments is not None:
            # What is left for now is swept away later.
            with contextlib.suppress(LogUnavailable):
                await self._staged.drop(run.run_id)

    async def undo_late_steps(self, run: Run) -> None:
        """Others have decided about the run, maybe undone its steps while one was still made here:
        what came too late for them is unmade. Doing that twice is as good as once. What is no file
        does not come too late: nobody undoes it before its time is over."""
        if run.stage in PREPARING:
            return
        for maker in reversed(self._makers):
            state = run.step(maker.name)
            if state is None or state.root is None:
                continue
            undo = run.effect("undo", maker.name)
            if run.stage == "refused" or (undo is not None and undo.phase == "done"):
                try:
                    await maker.undo(run, state)
                except UndoFailed as failure:
                    _log.warning("run %s: step %s: %s", run.run_id, maker.name, failure)
        await self.drop_staged_files(run)

    async def _place(
        self, run: Run, plan: Plan, maker: StepMaker, state: StepState | None
    ) -> StepPlace | None:
        if state is None:
            return await maker.place(run, plan)
        if state.phase == "taken":
            return None
        # The place is on record, whatever has become of it since.
        return StepPlace(state.root, state.relative, state.limit_seconds)

    async def _begin(self, preparation: Preparation, step: _PlacedStep) -> tuple[Preparation, bool]:
        run, name = preparation.run, step.maker.name
        begin = BeginStep(
            epoch=run.epoch,
            step=name,
            limit_seconds=step.place.limit_seconds or step.maker.limit_seconds,
            root=step.place.root,
            relative=step.place.relative,
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
        # Files are written to their end: they are undone as soon as that is known.
        made = await (making if state.root is not None else self._answer(run.run_id, making))
        self._interruption("after", f"step:{maker.name}")
        return made

    async def _answer(self, run_id: UUID, making: Coroutine[Any, Any, StepResult]) -> StepResult:
        task = asyncio.create_task(making)
        self._answers[run_id] = task
        try:
            return await task
        except asyncio.CancelledError:
            if (current := asyncio.current_task()) and current.cancelling():
                task.cancel()
                raise
            raise WrongStage("go on with the preparation", "refused meanwhile") from None
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

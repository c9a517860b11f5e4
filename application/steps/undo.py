"""Undoes what the steps of a preparation made, from the record, until it is acknowledged."""

import logging
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from application.concurrency.bulkhead import Bulkhead, undo_compartment
from application.log.unit_of_work import UnitOfWork
from application.ports.fault_injection import FaultPoint
from application.steps.step import StepMaker, UndoFailed
from domain.run.commands import ConfirmUndo, NoteUndoFailure
from domain.run.facts import STEP_ORDER, StepState
from domain.run.state import Run
from domain.values.refusals import NotYet

_log = logging.getLogger("spawnlog.undoing")


class StepUndoer:
    """Whoever comes to it undoes: no claim of the run is needed, and doing it twice is as good as
    once. Each does so in its room; `BulkheadFull` is raised when too many are waiting there."""

    def __init__(
        self,
        work: UnitOfWork,
        makers: Sequence[StepMaker],
        interruption: FaultPoint,
        rooms: Bulkhead,
    ) -> None:
        self._rooms = rooms
        self._work = work
        self._makers = {maker.name: maker for maker in makers}
        self._interruption = interruption

    async def undo(self, run_id: UUID) -> None:
        """Undo what is due of a run, the last step first. One that fails is on record and is tried
        again later, the steps before it no sooner."""
        run = await self._work.run(run_id)
        due = run.effects_at
        try:
            while due is not None and (state := _last_due(run, due)) is not None:
                run = await self._undo_one(run, state)
        except NotYet as why:
            _log.info("run %s: %s; another server works on it", run_id, why)

    async def _undo_one(self, run: Run, state: StepState) -> Run:
        try:
            async with self._rooms.of(undo_compartment(state.name)):
                self._interruption("before", f"undo:{state.name}")
                how = await self._makers[state.name].undo(run, state)
        except UndoFailed as failure:
            return await self._failed(run, state, str(failure))
        self._interruption("after", f"undo:{state.name}")
        appended = await self._work.record(run, (ConfirmUndo(step=state.name, how=how),))
        return appended.runs[run.run_id]

    async def _failed(self, run: Run, state: StepState, text: str) -> Run:
        _log.warning("run %s: step %s: %s", run.run_id, state.name, text)
        # Without the text, but on record: else it would be tried again and again at once.
        text_store = await self._work.text_store_or_none(run)
        command = NoteUndoFailure(
            step=state.name,
            attempt=state.undo_failures + 1,
            error=text_store.store("undoError", text) if text_store else None,
        )
        appended = await self._work.record(run, (command,), text_store)
        return appended.runs[run.run_id]


def _last_due(run: Run, due: datetime) -> StepState | None:
    steps = [one for one in run.steps if one.undo_at is not None and one.undo_at <= due]
    return max(steps, key=lambda one: STEP_ORDER.index(one.name), default=None)

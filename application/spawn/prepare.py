"""From an admitted request to a queued run, or to a refusal.

Everything here goes on from what is recorded, so that it can be done by the process that took the
request or by any other after a crash. The texts of an append are collected anew for each try.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from uuid import UUID

from application.context.scripts import NOTHING, ContextGatherer, GatheredContext
from application.log.texts import ContentsErased, TextStore
from application.log.unit_of_work import UnitOfWork
from application.ports.credentials import Credentials
from application.ports.files import BootstrapFiles, Workspaces
from application.spawn.create import ChildCreation
from application.spawn.outcomes import Erased, NotReady, PreparedRun, Ready, revoke_ready
from application.spawn.plan import (
    Ineligible,
    PlannedChild,
    PlanTexts,
    plan_spawn,
    read_requested_workspace,
)
from application.spawn.refuse import refuse, refuse_erased
from application.spawn.request import RecordedInputs
from application.steps.preparation import CallerPresence, Preparation
from application.steps.run_steps import StepFailed, StepRunner
from domain.run.commands import ResolveScripts, RunCommand, StartPreparation
from domain.run.events import ScriptsResolved
from domain.run.facts import ScriptReceipt
from domain.run.lifecycle import PREPARING
from domain.run.state import Run
from domain.spawn.cascade import CannotShare
from domain.spawn.dependencies import DependencyFailed
from domain.values.refusals import LostClaim, WrongStage
from domain.values.session_key import child_key

_log = logging.getLogger("spawnlog.preparing")


class RunPreparer:
    """Prepares runs. One at a time per run; `interrupt` breaks off what one waits for."""

    def __init__(
        self,
        work: UnitOfWork,
        gathering: ContextGatherer,
        stepping: StepRunner,
        bootstrap: BootstrapFiles,
        credentials: Credentials,
        workspaces: Workspaces,
    ) -> None:
        self._work = work
        self._gathering = gathering
        self._stepping = stepping
        self._creating = ChildCreation(work, bootstrap)
        self._credentials = credentials
        self._workspaces = workspaces
        self._scripts: dict[UUID, asyncio.Task[GatheredContext]] = {}
        self._callers: dict[UUID, CallerPresence] = {}

    @property
    def under_way(self) -> frozenset[UUID]:
        """The runs that are being prepared here now."""
        return frozenset(self._callers)

    def has_waiting_caller(self, run_id: UUID) -> bool:
        """Whether somebody waits for the answer to a spawn, as far as is known here."""
        caller_is_there = self._callers.get(run_id)
        return caller_is_there is None or caller_is_there()

    def interrupt(self, run_id: UUID) -> None:
        """The spawn was refused meanwhile (stopped): its scripts need not end, and nobody waits
        for an answer of somebody else."""
        task = self._scripts.get(run_id)
        if task is not None:
            task.cancel()
        self._stepping.interrupt(run_id)

    async def prepare(
        self, run: Run, caller_is_there: CallerPresence, in_hand: RecordedInputs | None = None
    ) -> PreparedRun:
        """Bring the run to its lane, or to a refusal. Gives the run as it is then.

        When somebody else refused it or took it over, that is the end of it here.
        """
        with self.mark_under_way((run,), caller_is_there):
            try:
                prepared = await self._record(await self.ready(run, caller_is_there, in_hand))
                await self.drop_staged_files((prepared.run,))
                return prepared
            except LostClaim as lost:
                _log.warning("preparation of %s: %s", run.run_id, lost)
            except WrongStage:
                _log.info("preparation of %s ends: it was decided elsewhere", run.run_id)
        return PreparedRun(await self.leave_to_others(run), None)

    @contextmanager
    def mark_under_way(
        self, runs: Sequence[Run], caller_is_there: CallerPresence
    ) -> Iterator[None]:
        """The runs are being prepared here until the end of the block."""
        self._callers.update((run.run_id, caller_is_there) for run in runs)
        try:
            yield
        finally:
            for run in runs:
                self._callers.pop(run.run_id, None)

    async def drop_staged_files(self, runs: Sequence[Run]) -> None:
        """What was set aside for them is where it belongs, or never will be."""
        for run in runs:
            await self._stepping.drop_staged_files(run)

    async def leave_to_others(self, run: Run) -> Run:
        """Somebody else has decided about the run: gives it as it is now."""
        now = await self._work.run(run.run_id)
        if now.stage in PREPARING and now.epoch == run.epoch:
            raise RuntimeError(f"the preparation of {run.run_id} made no progress")
        await self._stepping.undo_late_steps(now)
        return now

    async def ready(
        self, run: Run, caller_is_there: CallerPresence, in_hand: RecordedInputs | None = None
    ) -> Ready | NotReady | Erased:
        """Make all that the child needs, but for the last append.

        Raises `LostClaim` and `WrongStage` when somebody else has decided meanwhile.
        """
        try:
            step = await self._step(run, caller_is_there, in_hand)
        except ContentsErased as erased:
            _log.warning("run %s cannot be prepared: %s", run.run_id, erased)
            return Erased(run, caller_is_there)
        if run.stage == "requested":
            return await self._from_the_start(step)
        return await self._finish(step, await self._script_receipts(run), ())

    async def _record(self, made: Ready | NotReady | Erased) -> PreparedRun:
        if isinstance(made, Erased):
            return await refuse_erased(self._work, made.run)
        if isinstance(made, NotReady):
            return await refuse(self._work, made)
        try:
            return await self._creating.record(made)
        except (CannotShare, DependencyFailed) as cannot:
            return await refuse(self._work, revoke_ready(made, cannot.refusal))

    async def _step(
        self, run: Run, caller_is_there: CallerPresence, in_hand: RecordedInputs | None
    ) -> Preparation:
        work = self._work
        pinned = await work.configurations.at(run.config_revision)
        if in_hand is not None:
            keeper = TextStore(run.session_id, in_hand.key, work.identities.event_id)
            return Preparation(
                run, in_hand.task, in_hand.workspace, pinned, keeper, caller_is_there
            )
        keeper = await work.text_store(run)
        task = await work.contents.text(run.task) or ""
        workspace = await read_requested_workspace(work, run)
        return Preparation(run, task, workspace, pinned, keeper, caller_is_there)

    async def _from_the_start(self, step: Preparation) -> Ready | NotReady:
        run = step.run
        gathered = await self._gather(step)
        resolve = ResolveScripts(
            epoch=run.epoch,
            receipts=gathered.receipts,
            candidates=gathered.candidates,
            override_to=gathered.override_to,
        )
        if not gathered.receipts:
            # Nothing happened outside that a crash could repeat: one append for all of it.
            return await self._finish(step, (), (resolve,))
        appended = await self._work.record(run, (resolve,), step.keeper)
        resolved = replace(step, run=appended.runs[run.run_id], keeper=step.keeper.empty_copy())
        return await self._finish(resolved, gathered.receipts, ())

    async def _gather(self, step: Preparation) -> GatheredContext:
        if not self._gathering.listed(step.run, step.pinned):
            return NOTHING
        run_id = step.run.run_id
        task = asyncio.create_task(
            self._gathering.gather(step.run, step.task, step.pinned, step.keeper)
        )
        self._scripts[run_id] = task
        try:
            return await task
        except asyncio.CancelledError:
            if (current := asyncio.current_task()) and current.cancelling():
                task.cancel()
                raise
            raise WrongStage("go on with the preparation", "refused meanwhile") from None
        finally:
            self._scripts.pop(run_id, None)

    async def _script_receipts(self, run: Run) -> tuple[ScriptReceipt, ...]:
        return (await self._work.event(ScriptsResolved, run.run_id)).receipts

    async def _finish(
        self, step: Preparation, receipts: Sequence[ScriptReceipt], before: tuple[RunCommand, ...]
    ) -> Ready | NotReady:
        planned = await self._plan(step)
        if isinstance(planned, Ineligible):
            return NotReady(step, planned.refusal, planned.facts, before)
        stepped = await self._stepping.go(step, planned.plan, self._start(step.run), before)
        if isinstance(stepped, StepFailed):
            return NotReady(
                stepped.preparation,
                stepped.refusal,
                planned.facts,
                stepped.before,
                stepped.step,
            )
        return await self._creating.compose(stepped, planned, receipts)

    def _start(self, run: Run) -> StartPreparation:
        assert run.agent_id is not None
        key = run.child_session_key or child_key(run.agent_id, str(self._work.identities.run_id()))
        return StartPreparation(
            epoch=run.epoch, child_session_key=key, agent_id=run.agent_id, resources=()
        )

    async def _plan(self, step: Preparation) -> PlannedChild | Ineligible:
        argument = step.run.thinking_argument
        thinking = await self._work.contents.text(argument) if argument else None
        asked = PlanTexts(thinking=thinking, workspace=step.workspace)
        assert step.run.agent_id is not None
        credentials = await self._credentials.found(step.pinned, step.run.agent_id)
        return plan_spawn(step.run, step.pinned, self._workspaces, asked, credentials)

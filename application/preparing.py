"""From an admitted request to a queued run, or to a refusal.

Everything here goes on from what is recorded, so that it can be done by the process that took the
request or by any other after a crash. The texts of an append are collected anew for each try.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from application.answers import SpawnRefusal, accepted, refused
from application.child_workspace import requested_workspace
from application.context_gathering import NOTHING, ContextGathering, Gathered
from application.fitting import Unfit
from application.ingredients import (
    message_ingredients,
    preamble_ingredient,
    refusal_announcement,
)
from application.keeping import Keeper
from application.planning import FreeText, Planned, planned_child
from application.ports.configurations import PinnedConfiguration
from application.prepared_run import PreparedRun
from application.spawn_request import InHand
from application.work import Work
from domain.refusals import LostClaim, WrongStage
from domain.run.commands import (
    CreateSession,
    RefuseSpawn,
    ResolveScripts,
    RunCommand,
    StartPreparation,
)
from domain.run.events import ScriptsResolved
from domain.run.facts import Ingredient, ScriptReceipt
from domain.run.lifecycle import PREPARING
from domain.run.state import Run
from domain.session_key import child_key
from domain.spawn_notes import accepted_note

LANE = "subagent"

_log = logging.getLogger("spawnlog.preparing")

CallerIsThere = Callable[[], bool]


def nobody() -> bool:
    """For preparations that go on after a crash: no caller waits for them."""
    return False


@dataclass(frozen=True, slots=True)
class _Step:
    """The run and all that the next decision about it needs."""

    run: Run
    task: str
    workspace: str | None
    pinned: PinnedConfiguration
    keeper: Keeper
    caller_is_there: CallerIsThere


class Preparing:
    """Prepares runs. One at a time per run; `interrupt` breaks off the scripts of one."""

    def __init__(self, work: Work, gathering: ContextGathering) -> None:
        self._work = work
        self._gathering = gathering
        self._scripts: dict[UUID, asyncio.Task[Gathered]] = {}
        self._callers: dict[UUID, CallerIsThere] = {}

    @property
    def under_way(self) -> frozenset[UUID]:
        """The runs that are being prepared here now."""
        return frozenset(self._callers)

    def is_told(self, run_id: UUID) -> bool:
        """Whether somebody waits for the answer to a spawn, as far as is known here."""
        caller_is_there = self._callers.get(run_id)
        return caller_is_there is None or caller_is_there()

    def interrupt(self, run_id: UUID) -> None:
        """The spawn was refused meanwhile (stopped): its scripts need not end."""
        task = self._scripts.get(run_id)
        if task is not None:
            task.cancel()

    async def prepare(
        self, run: Run, caller_is_there: CallerIsThere, in_hand: InHand | None = None
    ) -> PreparedRun:
        """Bring the run to its lane, or to a refusal. Gives the run as it is then.

        When somebody else refused it or took it over, that is the end of it here.
        """
        epoch = run.epoch
        self._callers[run.run_id] = caller_is_there
        try:
            step = await self._step(run, caller_is_there, in_hand)
            if run.stage == "requested":
                return await self._from_the_start(step)
            return await self._finish(step, await self._receipts(run), ())
        except LostClaim as lost:
            _log.warning("preparation of %s: %s", run.run_id, lost)
        except WrongStage:
            _log.info("preparation of %s ends: it was decided elsewhere", run.run_id)
        finally:
            self._callers.pop(run.run_id, None)
        now = await self._work.run(run.run_id)
        if now.stage in PREPARING and now.epoch == epoch:
            raise RuntimeError(f"the preparation of {run.run_id} made no progress")
        return PreparedRun(now, None)

    async def _step(
        self, run: Run, caller_is_there: CallerIsThere, in_hand: InHand | None
    ) -> _Step:
        work = self._work
        pinned = await work.configurations.at(run.config_revision)
        if in_hand is not None:
            keeper = Keeper(run.session_id, in_hand.key, work.identities.event_id)
            return _Step(run, in_hand.task, in_hand.workspace, pinned, keeper, caller_is_there)
        keeper = await work.keeper(run)
        task = await work.contents.text(run.task) or ""
        workspace = await requested_workspace(work, run)
        return _Step(run, task, workspace, pinned, keeper, caller_is_there)

    async def _from_the_start(self, step: _Step) -> PreparedRun:
        run = step.run
        gathered = await self._gather(step)
        if gathered is None:
            return PreparedRun(await self._work.run(run.run_id), None)
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
        resolved = replace(step, run=appended.runs[run.run_id], keeper=step.keeper.fork())
        return await self._finish(resolved, gathered.receipts, ())

    async def _gather(self, step: _Step) -> Gathered | None:
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
            return None
        finally:
            self._scripts.pop(run_id, None)

    async def _receipts(self, run: Run) -> tuple[ScriptReceipt, ...]:
        recorded = await self._work.log.first("ScriptsResolved", run.run_id)
        assert recorded is not None
        assert isinstance(recorded.event, ScriptsResolved)
        return recorded.event.receipts

    async def _finish(
        self, step: _Step, receipts: Sequence[ScriptReceipt], before: tuple[RunCommand, ...]
    ) -> PreparedRun:
        run, agent_id = step.run, step.run.agent_id
        assert agent_id is not None
        planned = await self._plan(step)
        if isinstance(planned, Unfit):
            return await self._refuse(step, planned, before)
        key = run.child_session_key or child_key(agent_id, str(self._work.identities.run_id()))
        note = accepted_note(run.options.mode, run.requester.session_key)
        start = StartPreparation(
            epoch=run.epoch, child_session_key=key, agent_id=agent_id, resources=()
        )
        create = CreateSession(
            epoch=run.epoch,
            depth=run.depth,
            max_depth=step.pinned.configuration.subagent_defaults.max_spawn_depth,
            role=planned.capabilities.role,
            control_scope=planned.capabilities.control_scope,
            plan=planned.plan,
            ingredients=(*await self._preamble(step), *message_ingredients(run, receipts)),
            warnings=planned.warnings,
            note=note,
            lane=LANE,
            facts=planned.facts,
        )
        prepared = () if run.child_session_key else (start,)
        appended = await self._work.record(
            run,
            (*before, *prepared, create),
            step.keeper,
            spawn_answer=accepted(
                run,
                key=key,
                note=note,
                warnings=planned.warnings,
                model_applied=planned.plan.model_applied,
            ),
        )
        return PreparedRun(appended.runs[run.run_id], appended.position)

    async def _plan(self, step: _Step) -> Planned | Unfit:
        argument = step.run.thinking_argument
        thinking = await self._work.contents.text(argument) if argument else None
        asked = FreeText(thinking=thinking, workspace=step.workspace)
        return planned_child(step.run, step.pinned, self._work.configurations, asked)

    async def _preamble(self, step: _Step) -> tuple[Ingredient, ...]:
        preamble = step.run.preamble
        text = await self._work.contents.text(preamble) if preamble else None
        return preamble_ingredient(step.run, text, step.pinned.configuration, step.keeper)

    async def _refuse(
        self, step: _Step, unfit: Unfit, before: tuple[RunCommand, ...]
    ) -> PreparedRun:
        run, keeper, refusal = step.run, step.keeper, unfit.refusal
        text = None if step.caller_is_there() else refusal_announcement(run, refusal.text)
        command = RefuseSpawn(
            epoch=run.epoch,
            rule=refusal.rule,
            status=refusal.status,
            step="preparation",
            text=keeper.keep("refusal", refusal.text),
            inputs={"agentId": run.agent_id, "requestedAgentId": run.requested_agent_id},
            announcement=keeper.keep("announcement", text) if text else None,
            facts=unfit.facts,
        )
        told_as = SpawnRefusal(
            run_id=run.run_id, rule=refusal.rule, status=refusal.status, text=refusal.text
        )
        appended = await self._work.record(
            run, (*before, command), keeper, spawn_answer=refused(told_as)
        )
        return PreparedRun(appended.runs[run.run_id], appended.position)

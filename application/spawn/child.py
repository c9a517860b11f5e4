"""Preparation of one child, from its admitted run to the inputs of the last append.

The stages decide (`domain/spawn/stages.py`). This module looks up the facts and takes the steps
that they request, and records each step before and after it. A preparation that another process
began continues in the same way, from the record.
"""

import logging
from collections.abc import Sequence

from application.context.recorded_scripts import NothingRecorded, read_recorded_outputs
from application.context.scripts import NOTHING, ContextGatherer, GatheredContext
from application.log.texts import ContentsErased, TextStore
from application.log.unit_of_work import UnitOfWork
from application.ports.credentials import Credentials
from application.ports.files import BootstrapFiles, Workspaces
from application.spawn.create import build_child_creation
from application.spawn.outcomes import Outcome, Ready
from application.spawn.request import RecordedInputs
from application.spawn.workspace import choose_workspace, read_requested_workspace
from application.steps.preparation import (
    CallerPresence,
    Preparation,
    no_caller,
    refuse_erased,
)
from application.steps.run_steps import StepRunner
from application.steps.step import StepPlace, StepRefusedError
from domain.plan.child import RefusedChild
from domain.run.commands import ResolveScripts, StartPreparation
from domain.run.events import ScriptsResolved
from domain.run.facts import STEP_ORDER, ScriptReceipt, StepName
from domain.run.state import Run
from domain.spawn.pipeline import ChildFacts, Need
from domain.spawn.stages import SPAWN_STAGES, decide_child
from domain.values import rules
from domain.values.refusals import Refusal
from domain.values.session_key import child_key

_log = logging.getLogger("spawnlog.preparing")


class _MustBeRecordedError(Exception):
    """Signal that an action is needed that must be recorded first."""


class ChildPreparer:
    """Service that prepares one child: it looks up facts and takes steps as the stages request
    them."""

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
        self._bootstrap = bootstrap
        self._credentials = credentials
        self._workspaces = workspaces

    async def prepare(
        self, run: Run, caller_is_there: CallerPresence, in_hand: RecordedInputs | None
    ) -> Outcome:
        """Prepare a child up to, but not including, the last append.

        Raises:
            LostClaim, WrongStage: If another process has decided meanwhile.
        """
        try:
            preparation = await self._begin(run, caller_is_there, in_hand)
        except ContentsErased as erased:
            _log.warning("run %s cannot be prepared: %s", run.run_id, erased)
            return refuse_erased(run, caller_is_there)
        child = _Child(preparation, await self._facts(preparation))
        try:
            return await self._run_stages(child, records=True)
        except NothingRecorded as nothing:
            # The script output was on record when the spawn was admitted, so it was erased since.
            return preparation.refuse(rules.ERASED.refusal(str(nothing)), step=rules.ERASED.name)

    async def prepare_at_once(self, run: Run, in_hand: RecordedInputs) -> Ready | None:
        """Prepare a child whose run is about to be admitted, without recording anything.

        Return None if something must be recorded first, or if the child is refused.
        """
        if not follows_from_request(run):
            return None
        preparation = await self._begin(run, no_caller, in_hand)
        child = _Child(preparation, await self._facts(preparation))
        try:
            outcome = await self._run_stages(child, records=False)
        except _MustBeRecordedError:
            return None
        return outcome if isinstance(outcome, Ready) else None

    async def _run_stages(self, child: "_Child", *, records: bool) -> Outcome:
        """Run the stages until the child is ready or refused."""
        while isinstance(found := child.decide(), Need):
            await self._meet(child, found, records=records)
        if found is not None:
            return child.preparation.refuse(found.refusal, found.facts, found.step)
        key = self._start(child)
        return await build_child_creation(
            self._work, self._bootstrap, child.preparation, key, child.facts.plan, child.receipts
        )

    async def _meet(self, child: "_Child", need: Need, *, records: bool) -> None:
        preparation, facts = child.preparation, child.facts
        match need.fact:
            case "agent":
                if preparation.agent.context_scripts and not records:
                    raise _MustBeRecordedError
                await self._resolve_scripts(child)
            case "credentials":
                found = await self._credentials.found(preparation.pinned, preparation.agent)
                child.facts = facts.changed({"credentials": found})
            case "workspace":
                run, agent = preparation.run, preparation.agent
                chosen = choose_workspace(
                    run, agent, preparation.pinned, self._workspaces, preparation.workspace
                )
                child.facts = facts.changed({"workspace": chosen})
            case "places":
                await self._look_for_places(child, records=records)
            case "step":
                assert need.step is not None
                self._start(child)
                child.preparation, refusal = await self._stepping.take(
                    child.preparation, need.step, child.places[need.step]
                )
                child.facts = child.facts.with_step(need.step, refusal)

    async def _begin(
        self, run: Run, caller_is_there: CallerPresence, in_hand: RecordedInputs | None
    ) -> Preparation:
        work = self._work
        pinned = await work.configurations.at(run.config_revision)
        assert run.agent_id is not None
        agent = pinned.configuration.effective_agent(run.agent_id)
        if in_hand is not None:
            text_store = TextStore(run.session_id, in_hand.key, work.identities.event_id)
            task, workspace, preamble = in_hand.task, in_hand.workspace, in_hand.preamble
        else:
            text_store = await work.text_store(run)
            task = await work.contents.text(run.task) or ""
            workspace = await read_requested_workspace(work, run)
            preamble = await work.contents.text(run.preamble) if run.preamble else None
        return Preparation(
            run, task, workspace, preamble, pinned, agent, text_store, caller_is_there
        )

    async def _facts(self, preparation: Preparation) -> ChildFacts:
        run, argument = preparation.run, preparation.run.thinking_argument
        return ChildFacts(
            run=run,
            configuration=preparation.pinned.configuration,
            requester_sandboxed=run.requester.sandboxed,
            thinking_argument=await self._work.contents.text(argument) if argument else None,
        )

    def _start(self, child: "_Child") -> str:
        """Return the session key of the child. A new one is recorded with the preparation's steps,
        and never changes."""
        preparation = child.preparation
        if preparation.run.child_session_key is not None:
            return preparation.run.child_session_key
        run = preparation.run
        assert run.agent_id is not None
        key = child_key(run.agent_id, str(self._work.identities.run_id()))
        start = StartPreparation(
            epoch=run.epoch, child_session_key=key, agent_id=run.agent_id, steps=tuple(child.places)
        )
        child.preparation = preparation._replace(before=(*preparation.before, start))
        return key

    async def _resolve_scripts(self, child: "_Child") -> None:
        """Run the context scripts, or take their results from the record."""
        preparation = child.preparation
        run = preparation.run
        if run.stage != "requested":
            recorded = await self._work.event(ScriptsResolved, run.run_id)
            child.resolved(preparation, recorded.receipts)
            return
        gathered = await self._gather(preparation)
        resolve = ResolveScripts(
            epoch=run.epoch,
            receipts=gathered.receipts,
            candidates=gathered.candidates,
            override_to=gathered.override_to,
        )
        if not gathered.receipts:
            # Without scripts there is no external action to record first, so one append is enough.
            child.resolved(preparation._replace(before=(resolve,)), ())
            return
        appended = await self._work.record(run, (resolve,), preparation.text_store)
        child.resolved(preparation.recorded(appended.runs[run.run_id]), gathered.receipts)

    async def _gather(self, preparation: Preparation) -> GatheredContext:
        if not preparation.agent.context_scripts:
            return NOTHING
        return await self._stepping.answer(preparation.run.run_id, self._gathered(preparation))

    async def _gathered(self, preparation: Preparation) -> GatheredContext:
        """Run the scripts, or reuse the output recorded for the earlier run of a respawn that asks
        for it."""
        run, agent, pinned = preparation.run, preparation.agent, preparation.pinned
        text_store = preparation.text_store
        if run.respawn is None or run.respawn.scripts == "again":
            return await self._gathering.gather(run, agent, preparation.task, pinned, text_store)
        earlier = await self._work.run(run.respawn.run_id)
        recorded = await read_recorded_outputs(self._work, earlier, agent.context_scripts)
        return await self._gathering.reuse(run, agent, recorded, pinned, text_store)

    async def _look_for_places(self, child: "_Child", *, records: bool) -> None:
        run, plan = child.preparation.run, child.facts.plan.plan
        found: dict[StepName, bool | Refusal] = {}
        for step in STEP_ORDER:
            try:
                place = await self._stepping.place(run, plan, step)
            except StepRefusedError as refused:
                # The step may have exposed the child's key, so the refusal includes it. Nothing was
                # made.
                child.places.clear()
                self._start(child)
                found[step] = refused.refusal
                break
            if place is not None:
                if not records:
                    raise _MustBeRecordedError
                child.places[step] = place
            found[step] = place is not None
        child.facts = child.facts.changed({"places": found})


class _Child:
    """A child in preparation: the known facts, and how far its preparation has come."""

    def __init__(self, preparation: Preparation, facts: ChildFacts) -> None:
        self.preparation = preparation
        self.facts = facts
        self.receipts: Sequence[ScriptReceipt] = ()
        self.places: dict[StepName, StepPlace] = {}

    def decide(self) -> RefusedChild | Need | None:
        """Run the stages on the facts known now."""
        self.facts, found = decide_child(SPAWN_STAGES, self.facts)
        return found

    def resolved(self, preparation: Preparation, receipts: Sequence[ScriptReceipt]) -> None:
        """Store the result of the context scripts."""
        self.preparation, self.receipts = preparation, receipts
        run = preparation.run
        self.facts = self.facts.changed({"run": run, "agent_id": run.agent_id})


def follows_from_request(run: Run) -> bool:
    """Return True if a child of this run needs nothing from the record beyond its own request."""
    return not (
        run.attachments is not None
        or run.thread
        or run.options.context == "fork"
        or run.shares
        or run.dependencies
        or run.thinking_argument is not None
        or (run.respawn is not None and run.respawn.transcript_up_to is not None)
    )

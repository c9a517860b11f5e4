"""Dependencies: a waiting run is queued when all its targets are done, and ended if one fails."""

import contextlib
from collections.abc import Mapping
from uuid import UUID

from application.log.envelope import RecordedEvent
from application.log.texts import TextStore
from application.log.unit_of_work import UnitOfWork, with_fresh_reads
from domain.run.commands import SettleDependencies
from domain.run.events import DescendantsSettled, RunAnnounced, RunEnded, RunWaits, SpawnRefused
from domain.run.facts import Dependency
from domain.run.state import Run
from domain.spawn.dependencies import evaluate_dependencies, outcome_text, render_dependency
from domain.values.refusals import WrongStage

READS_MAX = 10
_DONE_WITH = (RunEnded, DescendantsSettled, RunAnnounced, SpawnRefused)


class DependencyWaits:
    """Resolver of the dependencies of waiting runs."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work

    async def reevaluate(self, run_id: UUID) -> None:
        """Queue or end a waiting run if its targets allow it. No-op if nothing changed, or it no
        longer waits."""
        # Another target may fail between the read and the append.
        await with_fresh_reads(
            lambda _: self._reevaluate(run_id),
            "the dependencies of the run change too fast; they will be checked again",
            attempts_max=READS_MAX,
        )

    async def _reevaluate(self, run_id: UUID) -> None:
        run = await self._work.run(run_id)
        if run.waits_for is None or run.stage != "session-created":
            return
        # If the texts were erased, the run ends without an error text.
        text_store = await self._work.text_store_or_none(run)
        command = await self._command(run, text_store)
        with contextlib.suppress(WrongStage):
            await self._work.record(run, (command,), text_store)

    async def _command(self, run: Run, text_store: TextStore | None) -> SettleDependencies:
        targets = await self._targets(run)
        failed = evaluate_dependencies(run, targets).failed
        assert run.plan is not None
        lane = run.plan.lane
        if failed is None:
            return SettleDependencies(lane=lane)
        text = _failure_text(failed, targets[failed.run_id])
        error = text_store.store("error", text) if text_store is not None else None
        return SettleDependencies(lane=lane, culprit=failed.run_id, error=error)

    async def _targets(self, run: Run) -> Mapping[UUID, Run]:
        return {run_id: await self._work.run(run_id) for run_id in run.waits_for or ()}


class AwaitedRuns:
    """Targets of dependencies seen since this process started.

    When a run ends that is not among them, no lookup of waiting runs is needed.
    """

    def __init__(self) -> None:
        self._run_ids: set[UUID] = set()

    def is_met_by(self, recorded: RecordedEvent) -> bool:
        """Return True if a waiting run may be able to proceed after this event."""
        event = recorded.event
        if isinstance(event, RunWaits):
            self._run_ids.update(event.run_ids)
            return False
        run_id = recorded.envelope.provenance.run_id
        if run_id not in self._run_ids or not isinstance(event, _DONE_WITH):
            return False
        if isinstance(event, RunAnnounced | SpawnRefused):
            self._run_ids.discard(run_id)
        return True


def _failure_text(failed: Dependency, target: Run) -> str:
    return f"it was not started: its dependency {render_dependency(failed)} {outcome_text(target)}"

"""Takes queued runs out of their lanes, first in line first, as long as there is room."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from application.coordination.holder import Holder
from application.coordination.lane import QueuedChild, QueuedRuns
from application.execution.execute import RunExecutor
from application.log.envelope import Provenance
from application.log.event_log import Change, Decision, LaneQuery, Submission, World
from application.log.unit_of_work import UnitOfWork
from application.ports.runtimes import Launch
from domain.run.commands import ClaimRun
from domain.run.decide import decide
from domain.run.facts import EXTERNAL_LANE
from domain.run.state import Run
from domain.values.record import run_stream
from domain.values.refusals import NotYet, Rejected

CLAIMS_MAX = 16


class Dispatcher:
    """Implements `LanePlaces`. Claims for this process. One claim at a time, so that no slot is
    counted twice."""

    def __init__(self, work: UnitOfWork, executing: RunExecutor, holder: Holder) -> None:
        self._work = work
        self._executing = executing
        self._holder = holder
        self._one_at_a_time = asyncio.Lock()
        self._is_closed = False

    def close(self) -> None:
        """Claim nothing any more for runs that are only about to be queued."""
        self._is_closed = True

    async def take(self, queued: QueuedRuns) -> "ClaimedPlaces | None":
        """Their claim, and the start of those whose runtime is in this process. They are first in
        line when nobody waits; what is not claimed so waits for its turn."""
        if self._is_closed or queued.lane == EXTERNAL_LANE:
            return None
        holder = self._holder.name
        starts = [await self._executing.start_with_claim(one, holder) for one in queued.children]
        launches = {one.launch.run_id: one.launch for one in starts if one is not None}
        return ClaimedPlaces(
            self._executing,
            self._holder,
            {one.run.run_id: one for one in queued.children},
            launches,
            (
                self._claim_of(queued, holder),
                *(one.submission for one in starts if one is not None),
            ),
        )

    def _claim_of(self, queued: QueuedRuns, holder: str) -> Submission[None]:
        width, run_ids = self._width(), frozenset(queued.run_ids)

        def claim(world: World) -> Decision[None]:
            changes = decide_claims(world, holder, width, among=run_ids).changes
            if not changes:
                raise NotYet("others are first in line, or the lane is full")
            return Decision(None, changes)

        return Submission(
            command_id=self._work.identities.event_id(),
            streams=(),
            decide=claim,
            provenance=self._provenance(),
            lane=self._query(queued.lane, queued.depth, width),
        )

    async def dispatch(self) -> int:
        """Claim what can be claimed now, in every lane; gives how many runs were started."""
        claimed = 0
        async with self._one_at_a_time:
            # Where there is no room nothing is submitted: while agents take their time that is so
            # at every run that is queued. Whatever ends wakes this again.
            for lane, depth in await self._work.registry.waiting_lanes(width=self._width()):
                # Those are claimed by whoever executes them.
                while lane != EXTERNAL_LANE and (taken := await self._claim(lane, depth)):
                    claimed += taken
                    if taken < CLAIMS_MAX:
                        break
        return claimed

    def _width(self) -> int:
        configuration = self._work.configurations.current().configuration
        return configuration.subagent_defaults.max_concurrent

    async def _claim(self, lane: str, depth: int) -> int:
        width = self._width()
        appended = await self._work.submit(
            (),
            lambda world: decide_claims(world, self._holder.name, width),
            self._provenance(),
            lane=self._query(lane, depth, width),
        )
        for run_id in appended.result:
            self._executing.take(appended.runs[run_id])
        return len(appended.result)

    def _provenance(self) -> Provenance:
        """Each claim is about a run of its own, and says so."""
        return Provenance(config_revision=self._work.configurations.current().revision)

    def _query(self, lane: str, depth: int, width: int) -> LaneQuery:
        return LaneQuery(lane, depth, min(width, CLAIMS_MAX))


@dataclass(frozen=True, slots=True)
class ClaimedPlaces:
    """Implements `TakenPlaces`. `launches` are those of runs that are started with their claim."""

    executing: RunExecutor
    holder: Holder
    children: Mapping[UUID, QueuedChild]
    launches: Mapping[UUID, Launch]
    follow_ups: tuple[Submission[Any], ...]

    def execute(self, runs: Iterable[Run]) -> None:
        """Execute those that this process holds."""
        for run in runs:
            if run.holder != self.holder.name:
                # The lease was lost meanwhile: others decide what becomes of it.
                continue
            if run.stage == "started":
                self.executing.take(run, launch=self.launches[run.run_id])
            elif run.stage == "queued":
                self.executing.take(run, child=self.children.get(run.run_id))


def decide_claims(
    world: World, holder: str, width: int, among: Collection[UUID] | None = None
) -> Decision[tuple[UUID, ...]]:
    """Claim the next runs of a lane of this width; gives their ids. With `among` only as long as
    it is one of these that is next."""
    assert world.lane is not None
    running = world.lane.running
    changes: list[Change] = []
    taken: list[UUID] = []
    for run in world.lane.next:
        if among is not None and run.run_id not in among:
            break
        command = ClaimRun(holder=holder, lane_width=width, lane_running=running)
        try:
            events = decide(run, command)
        except Rejected:
            continue
        changes += [(run_stream(run.run_id), event) for event in events]
        taken.append(run.run_id)
        running += 1
    return Decision(tuple(taken), changes)

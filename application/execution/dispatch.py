"""Takes queued runs out of their lanes, first in line first, as long as there is room."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from application.coordination.holder import Holder
from application.coordination.lane import QueuedChild
from application.execution.execute import PreparedStart, RunExecutor
from application.execution.waiting_runs import WaitingRuns
from application.log.envelope import Provenance
from application.log.event_log import Change, Decision, Following, LaneFacts, LaneQuery, World
from application.log.unit_of_work import UnitOfWork
from domain.run.commands import ClaimRun
from domain.run.decide import decide
from domain.run.facts import EXTERNAL_LANE
from domain.run.state import Run
from domain.values.record import run_stream
from domain.values.refusals import Rejected

CLAIMS_MAX = 16


class Dispatcher:
    """Implements `LanePlaces`. Claims for this process. One claim at a time, so that no slot is
    counted twice."""

    def __init__(self, work: UnitOfWork, executing: RunExecutor, holder: Holder) -> None:
        self._work = work
        self._executing = executing
        self._holder = holder
        self._one_at_a_time = asyncio.Lock()
        self.waiting = WaitingRuns()
        self._is_closed = False

    def close(self) -> None:
        """Claim nothing any more for runs that are only about to be queued."""
        self._is_closed = True

    async def room(
        self, lane: str, depth: int, children: Sequence[QueuedChild] = ()
    ) -> "ClaimedRoom | None":
        """Prepare the claim of runs, and the start of those whose runtime is in this process. What
        is not claimed then waits for its turn."""
        if self._is_closed or lane == EXTERNAL_LANE:
            return None
        holder, width = self._holder.name, self._width()
        starts = [await self._executing.prepare_start(one, holder) for one in children]
        return ClaimedRoom(
            executing=self._executing,
            holder=self._holder,
            claim=Claim(holder, width, self._work.identities.event_id(), self._provenance()),
            query=self._query(lane, depth, width),
            children={one.run.run_id: one for one in children},
            starts={one.launch.run_id: one for one in starts if one is not None},
        )

    async def dispatch(self) -> int:
        """Claim what can be claimed now, in every lane; gives how many runs were started."""
        claimed = 0
        async with self._one_at_a_time:
            # Where there is no room nothing is submitted: while agents take their time that is so
            # at every run that is queued. Whatever ends wakes this again.
            unknown = self.waiting.unknown
            lanes = await self._work.registry.waiting_lanes(width=self._width())
            if not lanes:
                self.waiting.note_none(unknown)
            for lane, depth, is_full in lanes:
                if is_full or lane == EXTERNAL_LANE:
                    # Those are claimed by whoever executes them.
                    continue
                while taken := await self._claim(lane, depth):
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
            lambda world: decide_claims(_lane_of(world), self._holder.name, width),
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


class Claim(NamedTuple):
    """A claim of runs in a lane of this width, as it is recorded."""

    holder: str
    width: int
    command_id: UUID
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedRoom:
    """Implements `LaneRoom`. `starts` are those of runs that are started with their claim."""

    executing: RunExecutor
    holder: Holder
    claim: Claim
    query: LaneQuery
    children: Mapping[UUID, QueuedChild]
    starts: Mapping[UUID, PreparedStart]

    def claims(
        self, lane: LaneFacts, now: datetime, runs: Sequence[Run], *, is_as_prepared: bool
    ) -> list[Following]:
        """Claim them if they are first in line, and start them."""
        if lane.next or lane.may_have_more:
            return []
        holder, width = self.claim.holder, self.claim.width
        first = LaneFacts(lane.running, tuple(runs[: self.query.take]))
        decided = decide_claims(first, holder, width)
        if not decided.result:
            return []
        claim = Decision(None, decided.changes)
        claimed = Following(self.claim.command_id, self.claim.provenance, claim)
        started = [
            self.starts[run_id].following(now)
            for run_id in decided.result
            if is_as_prepared and run_id in self.starts
        ]
        return [claimed, *started]

    def execute(self, runs: Iterable[Run]) -> None:
        """Execute those that this process holds."""
        for run in runs:
            if run.holder != self.holder.name:
                # The lease was lost meanwhile: others decide what becomes of it.
                continue
            if run.stage == "started":
                self.executing.take(run, start=self.starts[run.run_id])
            elif run.stage == "queued":
                self.executing.take(run, child=self.children.get(run.run_id))


def _lane_of(world: World) -> LaneFacts:
    assert world.lane is not None
    return world.lane


def decide_claims(lane: LaneFacts, holder: str, width: int) -> Decision[tuple[UUID, ...]]:
    """Claim the next runs of a lane of this width, and give their ids."""
    running = lane.running
    changes: list[Change] = []
    taken: list[UUID] = []
    for run in lane.next:
        command = ClaimRun(holder=holder, lane_width=width, lane_running=running)
        try:
            events = decide(run, command)
        except Rejected:
            continue
        changes += [(run_stream(run.run_id), event) for event in events]
        taken.append(run.run_id)
        running += 1
    return Decision(tuple(taken), changes)

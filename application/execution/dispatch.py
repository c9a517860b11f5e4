"""Dispatch: claim queued runs from their lanes, first in line first, while slots are free."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from application.coordination.lane import QueuedChild
from application.coordination.lease_owner import LeaseOwner
from application.execution.execute import PreparedStart, RunExecutor
from application.execution.waiting_runs import WaitingRuns
from application.log.envelope import Provenance
from application.log.event_log import (
    Change,
    Decision,
    DecisionContext,
    Following,
    LaneFacts,
    LaneQuery,
)
from application.log.unit_of_work import UnitOfWork
from domain.run.commands import ClaimRun
from domain.run.decide import decide
from domain.run.facts import EXTERNAL_LANE
from domain.run.state import Run
from domain.values.record import run_stream
from domain.values.refusals import Rejected

CLAIMS_MAX = 16


class Dispatcher:
    """Claimer of queued runs for this process. Implements `LanePlaces`.

    Only one claim runs at a time, so that no slot is counted twice.
    """

    def __init__(self, work: UnitOfWork, executing: RunExecutor, holder: LeaseOwner) -> None:
        self._work = work
        self._executing = executing
        self._holder = holder
        self._one_at_a_time = asyncio.Lock()
        self.waiting = WaitingRuns()
        self._is_closed = False

    def close(self) -> None:
        """Stop claiming runs together with their admission."""
        self._is_closed = True

    async def room(
        self, lane: str, depth: int, children: Sequence[QueuedChild] = ()
    ) -> "ClaimedRoom | None":
        """Prepare the claim of new runs, and the start of those whose runtime is in this process.

        Runs that are not claimed then stay queued. Return None if this process claims nothing in
        the lane.
        """
        if self._is_closed or lane == EXTERNAL_LANE:
            return None
        holder, width = self._holder.name, self._width()
        starts = [await self._executing.prepare_start(child, holder) for child in children]
        return ClaimedRoom(
            executing=self._executing,
            holder=self._holder,
            claim=Claim(holder, width, self._work.identities.event_id(), self._provenance()),
            query=self._query(lane, depth, width),
            children={child.run.run_id: child for child in children},
            starts={start.launch.run_id: start for start in starts if start is not None},
        )

    async def dispatch(self) -> int:
        """Claim all runs that can be claimed now, in every lane. Return the number of runs
        started."""
        claimed = 0
        async with self._one_at_a_time:
            # Full lanes are skipped without a submission: while agents are busy, each newly queued
            # run gets here. The end of a run triggers another dispatch.
            unknown = self.waiting.unknown
            lanes = await self._work.registry.waiting_lanes(width=self._width())
            if not lanes:
                self.waiting.note_none(unknown)
            for lane, depth, is_full in lanes:
                if is_full or lane == EXTERNAL_LANE:
                    # Executors claim external runs themselves.
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
        """Return the provenance of a claim. It names no run, because each claim event is about its
        own."""
        return Provenance(config_revision=self._work.configurations.current().revision)

    def _query(self, lane: str, depth: int, width: int) -> LaneQuery:
        return LaneQuery(lane, depth, min(width, CLAIMS_MAX))


class Claim(NamedTuple):
    """The parameters of a claim, as recorded, in a lane with `width` slots."""

    holder: str
    width: int
    command_id: UUID
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedRoom:
    """Room in a lane for new runs. Implements `LaneRoom`.

    `starts` are the prepared starts of runs that are started with their claim.
    """

    executing: RunExecutor
    holder: LeaseOwner
    claim: Claim
    query: LaneQuery
    children: Mapping[UUID, QueuedChild]
    starts: Mapping[UUID, PreparedStart]

    def claims(
        self, lane: LaneFacts, now: datetime, runs: Sequence[Run], *, is_as_prepared: bool
    ) -> list[Following]:
        """Return the appends that claim the runs and start them; empty if other runs are ahead in
        line."""
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
        """Execute the runs that this process holds."""
        for run in runs:
            if run.holder != self.holder.name:
                # The lease was lost meanwhile, so another process decides about the run.
                continue
            if run.stage == "started":
                self.executing.take(run, start=self.starts[run.run_id])
            elif run.stage == "queued":
                self.executing.take(run, child=self.children.get(run.run_id))


def _lane_of(world: DecisionContext) -> LaneFacts:
    assert world.lane is not None
    return world.lane


def decide_claims(lane: LaneFacts, holder: str, width: int) -> Decision[tuple[UUID, ...]]:
    """Claim the next runs of a lane with `width` slots, and return their ids."""
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

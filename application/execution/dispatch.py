"""Takes queued runs out of their lanes, first in line first, as long as there is room."""

import asyncio
from uuid import UUID

from application.coordination.holder import Holder
from application.execution.execute import RunExecutor
from application.log.envelope import Provenance
from application.log.event_log import Change, Decision, LaneQuery, World
from application.log.unit_of_work import UnitOfWork
from domain.run.commands import ClaimRun
from domain.run.decide import decide
from domain.values.record import run_stream
from domain.values.refusals import Rejected

CLAIMS_MAX = 16


class Dispatcher:
    """Claims for this process. One claim at a time, so that no slot is counted twice."""

    def __init__(self, work: UnitOfWork, executing: RunExecutor, holder: Holder) -> None:
        self._work = work
        self._executing = executing
        self._holder = holder
        self._one_at_a_time = asyncio.Lock()

    async def dispatch(self) -> int:
        """Claim what can be claimed now, in every lane; gives how many runs were started."""
        claimed = 0
        async with self._one_at_a_time:
            # Where there is no room nothing is submitted: while agents take their time that is so
            # at every run that is queued. Whatever ends wakes this again.
            for lane, depth in await self._work.registry.waiting_lanes(width=self._width()):
                while taken := await self._claim(lane, depth):
                    claimed += taken
                    if taken < CLAIMS_MAX:
                        break
        return claimed

    def _width(self) -> int:
        configuration = self._work.configurations.current().configuration
        return configuration.subagent_defaults.max_concurrent

    async def _claim(self, lane: str, depth: int) -> int:
        pinned = self._work.configurations.current()
        width = self._width()
        appended = await self._work.submit(
            (),
            lambda world: decide_claims(world, self._holder.name, width),
            # Each claim is about a run of its own, and says so.
            Provenance(config_revision=pinned.revision),
            lane=LaneQuery(lane, depth, min(width, CLAIMS_MAX)),
        )
        for run_id in appended.result:
            self._executing.take(appended.runs[run_id])
        return len(appended.result)


def decide_claims(world: World, holder: str, width: int) -> Decision[tuple[UUID, ...]]:
    """Claim the next runs of a lane of this width; gives their ids."""
    assert world.lane is not None
    running = world.lane.running
    changes: list[Change] = []
    taken: list[UUID] = []
    for run in world.lane.next:
        command = ClaimRun(holder=holder, lane_width=width, lane_running=running)
        try:
            events = decide(run, command)
        except Rejected:
            continue
        changes += [(run_stream(run.run_id), event) for event in events]
        taken.append(run.run_id)
        running += 1
    return Decision(tuple(taken), changes)

"""A spawn that is recorded as a whole: what its request would become is prepared before it is
admitted.

Often all that a child needs follows from its request, from the configuration and from the files of
its workspace. Then its creation is recorded in the transaction of its admission, and its claim too
when there is room in its lane. Each is judged there once more, on the run as it was admitted: when
that is another one than was assumed, the admission alone is recorded, and the spawn goes on from
its record.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from application.coordination.lane import LanePlaces
from application.log.event_log import Content, Decision, Submission, World
from application.log.unit_of_work import UnitOfWork
from application.spawn.create import follow_with_creation
from application.spawn.outcomes import Ready
from application.spawn.prepare import RunPreparer
from application.spawn.request import RecordedInputs
from domain.run.state import Run
from domain.spawn.batch import speculative_state
from domain.spawn.cascade import CascadeState
from domain.spawn.decide import SpawnDecision
from domain.values.refusals import Rejected

PROVISIONAL = datetime(1, 1, 1, tzinfo=UTC)
"""Stands for the time at which it will be recorded, on which nothing here depends."""


_log = logging.getLogger("spawnlog.spawning")


@dataclass(frozen=True, slots=True)
class Speculation:
    """What may follow an admission in its transaction. `contents` are the texts that the admission
    keeps of its runs, to which that refers."""

    contents: Sequence[Content] = ()
    follow_ups: tuple[Submission[Any], ...] = ()


NOTHING_FOLLOWS = Speculation()


class SpawnSpeculation:
    """Prepares what is not admitted yet."""

    def __init__(self, work: UnitOfWork, preparing: RunPreparer, lanes: LanePlaces) -> None:
        self._work = work
        self._preparing = preparing
        self._lanes = lanes

    async def of(
        self,
        assumed: World,
        decide: Callable[[World], Decision[SpawnDecision]],
        in_hand: Sequence[RecordedInputs],
    ) -> Speculation:
        """What may follow an admission if the record is as it is assumed to be; `in_hand` has the
        texts of its runs, in their order."""
        try:
            decision = decide(assumed)
        except Rejected:
            return NOTHING_FOLLOWS
        if decision.result.refusal is not None:
            return NOTHING_FOLLOWS
        family = CascadeState(assumed.runs, assumed.sessions)
        after = speculative_state(family, decision.changes, PROVISIONAL)
        runs = [run for run in after.runs.values() if run.run_id not in assumed.runs]
        try:
            ready = await self._ready(runs, in_hand)
        except Exception:
            # Prepared from its record it will fail in the same way, and that is on record.
            _log.exception("a spawn cannot be prepared before it is admitted")
            return NOTHING_FOLLOWS
        if not ready:
            return NOTHING_FOLLOWS
        creation = follow_with_creation(self._work, ready)
        run_ids = [one.preparation.run.run_id for one in ready]
        create = ready[0].create
        claim = self._lanes.follow_up(run_ids, create.lane, create.depth)
        follow_ups = (creation,) if claim is None else (creation, claim)
        return Speculation(decision.contents, follow_ups)

    async def _ready(
        self, runs: Sequence[Run], in_hand: Sequence[RecordedInputs]
    ) -> tuple[Ready, ...]:
        """All of them, or none."""
        if len(runs) == 1:
            only = await self._preparing.ready_at_once(runs[0], in_hand[0])
            return (only,) if only is not None else ()
        ready = await asyncio.gather(
            *(
                self._preparing.ready_at_once(run, inputs)
                for run, inputs in zip(runs, in_hand, strict=True)
            )
        )
        found = tuple(one for one in ready if one is not None)
        return found if len(found) == len(runs) else ()

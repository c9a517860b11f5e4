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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from application.coordination.lane import LanePlaces, QueuedChild, QueuedRuns, TakenPlaces
from application.log.event_log import Decision, Submission, World
from application.log.unit_of_work import UnitOfWork
from application.spawn.create import decide_children, follow_with_creation
from application.spawn.outcomes import Ready
from application.spawn.prepare import RunPreparer
from application.spawn.request import RecordedInputs
from domain.run.events import SessionCreated
from domain.run.state import Run
from domain.spawn.batch import speculative_state
from domain.spawn.cascade import CascadeState
from domain.spawn.decide import SpawnDecision
from domain.values.record import run_id_of
from domain.values.refusals import Rejected

PROVISIONAL = datetime(1, 1, 1, tzinfo=UTC)
"""Stands for the time at which it will be recorded, on which nothing here depends."""


_log = logging.getLogger("spawnlog.spawning")


@dataclass(frozen=True, slots=True)
class Speculation:
    """What may follow an admission in its transaction. `admission` is what was decided on what is
    assumed to be on record; what follows refers to its texts."""

    admission: Decision[SpawnDecision] | None = None
    creation: Submission[Any] | None = None
    places: TakenPlaces | None = None

    @property
    def follow_ups(self) -> tuple[Submission[Any], ...]:
        """In their order."""
        if self.creation is None:
            return ()
        return (self.creation, *(self.places.follow_ups if self.places is not None else ()))

    def execute(self, runs: Iterable[Run]) -> None:
        """Execute those of the runs, as they were recorded, that were claimed."""
        if self.places is not None:
            self.places.execute(runs)


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
        admitted = speculative_state(family, decision.changes, PROVISIONAL)
        runs = [run for run in admitted.runs.values() if run.run_id not in assumed.runs]
        try:
            ready = await self._ready(runs, in_hand)
            if not ready:
                return NOTHING_FOLLOWS
            world = assumed._replace(runs=admitted.runs, sessions=admitted.sessions)
            created = decide_children(world, ready)
            children = _queued(admitted, ready, decision, created)
            create, run_ids = ready[0].create, [one.run.run_id for one in children]
            queued = QueuedRuns(run_ids, create.lane, create.depth, children)
            places = await self._lanes.take(queued)
        except Exception:
            # Prepared from its record it will fail in the same way, and that is on record.
            _log.exception("a spawn cannot be prepared before it is admitted")
            return NOTHING_FOLLOWS
        return Speculation(decision, follow_with_creation(self._work, ready, created), places)

    async def _ready(
        self, runs: Sequence[Run], in_hand: Sequence[RecordedInputs]
    ) -> tuple[Ready, ...]:
        """All of them, or none."""
        ready = await asyncio.gather(
            *(
                self._preparing.ready_at_once(run, inputs)
                for run, inputs in zip(runs, in_hand, strict=True)
            )
        )
        found = tuple(one for one in ready if one is not None)
        return found if len(found) == len(runs) else ()


def _queued(
    admitted: CascadeState,
    ready: Sequence[Ready],
    admission: Decision[SpawnDecision],
    creation: Decision[None],
) -> list[QueuedChild]:
    """The children as they will be queued."""
    after = speculative_state(admitted, creation.changes, PROVISIONAL)
    created = {
        run_id_of(stream): event
        for stream, event in creation.changes
        if isinstance(event, SessionCreated)
    }
    children: list[QueuedChild] = []
    for one in ready:
        run = after.run(one.preparation.run.run_id)
        text_store = one.preparation.text_store
        requester = after.sessions.get(run.requester.session_key)
        children.append(
            QueuedChild(
                run=run,
                created=created[run.run_id],
                texts={
                    each.ref.id: each.text
                    for each in (*admission.contents, *creation.contents)
                    if each.session_id == run.session_id
                },
                text_store=text_store,
                is_sharing=requester is not None and requester.shared_position is not None,
            )
        )
    return children

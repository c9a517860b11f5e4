"""What follows an admission in its decision, prepared ahead of it.

Often all that a child needs follows from its request, from the configuration and from the files of
its workspace. Then its creation is decided with its admission, and its claim and start too if there
is room in its lane: one decision, one transaction. It is decided on what is known of the requester
before the lock is taken. If that is not so any more under the lock, and the run that is admitted is
another one than was prepared, the admission alone is recorded, and the spawn goes on from its
record.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from application.coordination.lane import LanePlaces, LaneRoom, QueuedChild
from application.log.event_log import Decision, Following, LaneQuery, StoredAnswer, World
from application.log.unit_of_work import UnitOfWork, provenance_of
from application.spawn.child import ChildPreparer
from application.spawn.create import decide_children
from application.spawn.outcomes import Ready
from application.spawn.request import RecordedInputs
from domain.run.events import SessionCreated
from domain.run.state import Run
from domain.spawn.batch import Speculation, begun_runs, is_as_assumed
from domain.spawn.cascade import CascadeState
from domain.spawn.decide import SpawnDecision
from domain.values.record import run_id_of
from domain.values.refusals import Rejected

PROVISIONAL = datetime(1, 1, 1, tzinfo=UTC)
"""Stands for the time at which it will be recorded, on which nothing here depends."""


_log = logging.getLogger("spawnlog.spawning")


@dataclass(frozen=True, slots=True)
class PreparedSpawn:
    """A spawn that was decided before it is recorded.

    Attributes:
        admission: What was decided on what was known of the requester.
        admitted: The runs as it admits them.
        creation: What creates their children.
        queued: The runs as it queues them.
        room: Room in their lane; None when this process takes no runs any more.
    """

    admission: Decision[SpawnDecision]
    admitted: tuple[Run, ...]
    creation: Following
    queued: tuple[Run, ...]
    room: LaneRoom | None

    @property
    def lane(self) -> LaneQuery | None:
        """Return what has to be known of the lane."""
        return self.room.query if self.room is not None else None

    @property
    def answer(self) -> StoredAnswer:
        """Return what the caller is told when the children are created."""
        told = self.creation.decision.run_answer
        assert told is not None
        _, answer = told
        return answer

    def following(self, world: World, admission: Decision[SpawnDecision]) -> tuple[Following, ...]:
        """Return what follows the admission that was decided in the end."""
        if admission is not self.admission and not self._admits_the_same(admission):
            return ()
        if self.room is None or world.lane is None:
            return (self.creation,)
        requester = world.sessions.get(self.admitted[0].requester.session_key)
        # What a family shares has to be read before a run of it can start.
        is_as_prepared = requester is None or requester.shared_position is None
        claims = self.room.claims(world.lane, world.now, self.queued, is_as_prepared=is_as_prepared)
        return (self.creation, *claims)

    def _admits_the_same(self, admission: Decision[SpawnDecision]) -> bool:
        now = begun_runs([one.run_id for one in self.admitted], admission.changes, PROVISIONAL)
        return all(is_as_assumed(now[one.run_id], one) for one in self.admitted)

    def execute(self, runs: Iterable[Run]) -> None:
        """Execute those of the runs, as they were recorded, that were claimed."""
        if self.room is not None:
            self.room.execute(runs)


class AheadPreparer:
    """Prepares what is not admitted yet."""

    def __init__(self, work: UnitOfWork, children: ChildPreparer, lanes: LanePlaces) -> None:
        self._work = work
        self._children = children
        self._lanes = lanes

    async def prepare(
        self,
        assumed: World,
        decide: Callable[[World], Decision[SpawnDecision]],
        in_hand: Sequence[RecordedInputs],
    ) -> PreparedSpawn | None:
        """Decide a spawn if the record is as it is assumed to be; `in_hand` has the texts of its
        runs, in their order. None when something has to be recorded before its children exist, or
        when it is refused."""
        try:
            admission = decide(assumed)
        except Rejected:
            return None
        if admission.result.refusal is not None:
            return None
        ahead = Speculation(CascadeState(assumed.runs, assumed.sessions), PROVISIONAL)
        ahead.add(admission.changes)
        runs = [run for run in ahead.family.runs.values() if run.run_id not in assumed.runs]
        try:
            ready = await self._ready(runs, in_hand)
            if not ready:
                return None
            creation = decide_children(ahead, ready)
            children = _queued(ahead.family, ready, admission, creation)
            create = ready[0].create
            room = await self._lanes.room(create.lane, create.depth, children)
        except Exception:
            # Prepared from its record it will fail in the same way, and that is on record.
            _log.exception("a spawn cannot be prepared before it is admitted")
            return None
        created = Following(
            self._work.identities.event_id(),
            provenance_of(runs[0]),
            creation,
            frozenset(run.run_id for run in runs),
        )
        queued = tuple(one.run for one in children)
        return PreparedSpawn(admission, tuple(runs), created, queued, room)

    async def _ready(
        self, runs: Sequence[Run], in_hand: Sequence[RecordedInputs]
    ) -> tuple[Ready, ...]:
        """Make all of them ready, or return none."""
        if len(runs) == 1:
            one = await self._children.prepare_at_once(runs[0], in_hand[0])
            return () if one is None else (one,)
        ready = await asyncio.gather(
            *(
                self._children.prepare_at_once(run, inputs)
                for run, inputs in zip(runs, in_hand, strict=True)
            )
        )
        found = tuple(one for one in ready if one is not None)
        return found if len(found) == len(runs) else ()


def _queued(
    after: CascadeState,
    ready: Sequence[Ready],
    admission: Decision[SpawnDecision],
    creation: Decision[None],
) -> list[QueuedChild]:
    """Return the children as they will be queued, in the family after both decisions."""
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

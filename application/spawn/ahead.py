"""Prepares a spawn ahead of its admission, to record all of it in one transaction.

Often everything that a child needs follows from its request, the configuration and its workspace
files. Then the admission's decision includes its creation and, if its lane has room, its claim and
start. It is prepared from the known state of the requester, before the lock is taken. If under the
lock that state has changed and another run would be admitted, only the admission is recorded. The
spawn then continues from the record.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from application.coordination.lane import LanePlaces, LaneRoom, QueuedChild
from application.log.event_log import Decision, DecisionContext, Following, LaneQuery, StoredAnswer
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
"""Placeholder for the recording time, on which nothing here depends."""


_log = logging.getLogger("spawnlog.spawning")


@dataclass(frozen=True, slots=True)
class PreparedSpawn:
    """A spawn decided before it is recorded.

    Attributes:
        admission: Decision on the assumed state of the requester.
        admitted: The runs that it admits.
        creation: The append that creates their children.
        queued: The runs as queued.
        room: Room in their lane; None if this process takes no more runs.
    """

    admission: Decision[SpawnDecision]
    admitted: tuple[Run, ...]
    creation: Following
    queued: tuple[Run, ...]
    room: LaneRoom | None

    @property
    def lane(self) -> LaneQuery | None:
        """Return the query for the state of the lane; None if no run will be claimed."""
        return self.room.query if self.room is not None else None

    @property
    def answer(self) -> StoredAnswer:
        """Return the answer to the caller once the children are created."""
        run_answer = self.creation.decision.run_answer
        assert run_answer is not None
        _, answer = run_answer
        return answer

    def following(
        self, world: DecisionContext, admission: Decision[SpawnDecision]
    ) -> tuple[Following, ...]:
        """Return the appends to record after `admission`, the decision made under the lock."""
        if admission is not self.admission and not self._admits_the_same(admission):
            return ()
        if self.room is None or world.lane is None:
            return (self.creation,)
        requester = world.sessions.get(self.admitted[0].requester.session_key)
        # Shared context must be read before a run of the family can start.
        is_as_prepared = requester is None or requester.shared_position is None
        claims = self.room.claims(world.lane, world.now, self.queued, is_as_prepared=is_as_prepared)
        return (self.creation, *claims)

    def _admits_the_same(self, admission: Decision[SpawnDecision]) -> bool:
        now = begun_runs([run.run_id for run in self.admitted], admission.changes, PROVISIONAL)
        return all(is_as_assumed(now[run.run_id], run) for run in self.admitted)

    def execute(self, runs: Iterable[Run]) -> None:
        """Execute those of the recorded runs that this process claimed."""
        if self.room is not None:
            self.room.execute(runs)


class AheadPreparer:
    """Preparer of spawns that are not admitted yet."""

    def __init__(self, work: UnitOfWork, children: ChildPreparer, lanes: LanePlaces) -> None:
        self._work = work
        self._children = children
        self._lanes = lanes

    async def prepare(
        self,
        assumed: DecisionContext,
        decide: Callable[[DecisionContext], Decision[SpawnDecision]],
        in_hand: Sequence[RecordedInputs],
    ) -> PreparedSpawn | None:
        """Decide a spawn on the assumed record.

        Return None if it is refused, or if something must be recorded before its children exist.

        Args:
            assumed: The assumed record.
            decide: The admission's decision function.
            in_hand: The inputs of its runs, in their order.
        """
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
            # Preparation from the record will fail in the same way, and record the failure.
            _log.exception("a spawn cannot be prepared before it is admitted")
            return None
        created = Following(
            self._work.identities.event_id(),
            provenance_of(runs[0]),
            creation,
            frozenset(run.run_id for run in runs),
        )
        queued = tuple(child.run for child in children)
        return PreparedSpawn(admission, tuple(runs), created, queued, room)

    async def _ready(
        self, runs: Sequence[Run], in_hand: Sequence[RecordedInputs]
    ) -> tuple[Ready, ...]:
        """Make all children ready, or return an empty tuple."""
        if len(runs) == 1:
            child = await self._children.prepare_at_once(runs[0], in_hand[0])
            return () if child is None else (child,)
        ready = await asyncio.gather(
            *(
                self._children.prepare_at_once(run, inputs)
                for run, inputs in zip(runs, in_hand, strict=True)
            )
        )
        found = tuple(child for child in ready if child is not None)
        return found if len(found) == len(runs) else ()


def _queued(
    after: CascadeState,
    ready: Sequence[Ready],
    admission: Decision[SpawnDecision],
    creation: Decision[None],
) -> list[QueuedChild]:
    """Return the children as they will be queued after both decisions."""
    created = {
        run_id_of(stream): event
        for stream, event in creation.changes
        if isinstance(event, SessionCreated)
    }
    children: list[QueuedChild] = []
    for child in ready:
        run = after.run(child.preparation.run.run_id)
        text_store = child.preparation.text_store
        requester = after.sessions.get(run.requester.session_key)
        children.append(
            QueuedChild(
                run=run,
                created=created[run.run_id],
                texts={
                    content.ref.id: content.text
                    for content in (*admission.contents, *creation.contents)
                    if content.session_id == run.session_id
                },
                text_store=text_store,
                is_sharing=requester is not None and requester.shared_position is not None,
            )
        )
    return children

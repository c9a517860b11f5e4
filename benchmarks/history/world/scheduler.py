"""Concurrent lives on a synthetic clock, whose requests share commits."""

import heapq
import itertools
import random
from collections import deque
from collections.abc import Generator
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from application.execution.dispatch import CLAIMS_MAX, decide_claims
from application.log.event_log import Appended, Decision, DecisionContext, LaneQuery, Submission
from application.log.unit_of_work import provenance_of
from benchmarks.history.world.identities import SeededIdentities
from benchmarks.history.world.simulated_log import Beginning, SimulatedLog, Sink
from domain.run.facts import SUBAGENT_LANE

T = TypeVar("T")

TOGETHER_SECONDS = 0.1
COMMIT_SECONDS = 0.004
COMMIT_SUBMISSIONS_MAX = 32


class Wait(NamedTuple):
    """Wait for this many seconds, or until an event is recorded in the stream."""

    seconds: float | None = None
    stream: str | None = None


Asked = Submission[Any] | Wait
Life = Generator[Asked, Any, T]


def ask(submission: Submission[T]) -> "Life[Appended[T]]":
    """Return the result of a submission; raise the error of its decision."""
    outcome = yield submission
    if outcome.error is not None:
        raise outcome.error
    appended: Appended[T] = outcome.appended
    return appended


class _Waiting:
    """A life that waits; `done` is True once it may continue."""

    __slots__ = ("done", "life", "stream")

    def __init__(self, life: "Life[Any]", stream: str | None) -> None:
        self.life = life
        self.stream = stream
        self.done = False


class LifeScheduler:
    """Carries lives on. Everything in it follows from the seed."""

    def __init__(self, seed: int, sink: Sink, beginning: Beginning) -> None:
        self.random = random.Random(seed)
        self.ids = SeededIdentities(seed)
        self.log = SimulatedLog(self.ids, sink, beginning)
        self._start = beginning.at
        self.holders = tuple(f"generated-{number}" for number in (1, 2))
        self.lane_width = 1
        self._microseconds = 0
        self._numbers = itertools.count()
        self._due: list[tuple[int, int, _Waiting]] = []
        self._by_stream: dict[str, list[_Waiting]] = {}
        self._asked: deque[tuple[Life[Any] | None, Submission[Any]]] = deque()
        self._claiming: set[int] = set()

    @property
    def now(self) -> datetime:
        """Return the time of the synthetic clock."""
        return self._start + timedelta(microseconds=self._microseconds)

    @property
    def is_over(self) -> bool:
        """Return True if no life is left."""
        return not (self._due or self._asked or self._by_stream)

    def begin(self, life: "Life[Any]", *, after_seconds: float = 0.0) -> None:
        """Begin a life after this many seconds."""
        self._wait(_Waiting(life, None), after_seconds)

    def step(self) -> None:
        """Advance to the next commit, or to the next time at which a life acts."""
        if not self._asked:
            self._move_on()
        taken = [
            self._asked.popleft() for _ in range(min(len(self._asked), COMMIT_SUBMISSIONS_MAX))
        ]
        if not taken:
            return
        self._pass(COMMIT_SECONDS * (0.5 + self.random.random()))
        before = self.log.position
        outcomes = self.log.append([append for _, append in taken], self.now)
        if self.log.position > before:
            # Wake the waiting lives first: later waits are for later events.
            for stream in self.log.changed:
                for waiting in self._by_stream.pop(stream, ()):
                    self._go_on(waiting)
            self._dispatch()
        for (life, _), outcome in zip(taken, outcomes, strict=True):
            if life is not None:
                self._resume(life, outcome)

    def _pass(self, seconds: float) -> None:
        self._microseconds += int(seconds * 1_000_000)
        self.ids.now_ms = int(self._start.timestamp() * 1000) + self._microseconds // 1000

    def _move_on(self) -> None:
        if not self._due:
            raise RuntimeError("everybody waits for somebody else: the simulation has a mistake")
        self._microseconds = max(self._microseconds, self._due[0][0])
        until = self._microseconds + int(TOGETHER_SECONDS * 1_000_000)
        while self._due and self._due[0][0] <= until and len(self._asked) < COMMIT_SUBMISSIONS_MAX:
            at, _, waiting = heapq.heappop(self._due)
            if not waiting.done:
                self._microseconds = max(self._microseconds, at)
                self._go_on(waiting)
        self._pass(0.0)

    def _go_on(self, waiting: _Waiting) -> None:
        if waiting.done:
            return
        waiting.done = True
        if waiting.stream is not None:
            others = self._by_stream.get(waiting.stream)
            # A life that continued earlier may wait for the same event again.
            if others is not None and waiting in others:
                others.remove(waiting)
                if not others:
                    del self._by_stream[waiting.stream]
        self._resume(waiting.life, None)

    def _resume(self, life: "Life[Any]", value: object) -> None:
        try:
            event = life.send(value)
        except StopIteration:
            return
        if isinstance(event, Wait):
            self._wait(_Waiting(life, event.stream), event.seconds)
        else:
            self._asked.append((life, event))

    def _wait(self, waiting: _Waiting, seconds: float | None) -> None:
        if waiting.stream is not None:
            self._by_stream.setdefault(waiting.stream, []).append(waiting)
        if seconds is not None:
            at = self._microseconds + int(seconds * 1_000_000)
            heapq.heappush(self._due, (at, next(self._numbers), waiting))

    def _dispatch(self) -> None:
        """Claim the first queued run of each lane with a free slot."""
        width = self.lane_width
        for depth, lane in self.log.lanes.items():
            if lane.waiting and len(lane.running) < width and depth not in self._claiming:
                self._claiming.add(depth)
                first = next(iter(lane.waiting.values()))
                claim = self._claim(depth, width)
                self._asked.append(
                    (
                        None,
                        Submission(
                            command_id=self.ids.event_id(),
                            streams=(),
                            decide=claim,
                            provenance=provenance_of(first),
                            lane=LaneQuery(SUBAGENT_LANE, depth, min(width, CLAIMS_MAX)),
                        ),
                    )
                )

    def _claim(self, depth: int, width: int) -> Any:
        holder = self.random.choice(self.holders)

        def choose(world: DecisionContext) -> Decision[tuple[UUID, ...]]:
            self._claiming.discard(depth)
            assert world.lane is not None
            return decide_claims(world.lane, holder, width)

        return choose

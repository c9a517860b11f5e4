"""Log in memory that decides with the writer's batches, from states in memory.

States are kept only while their streams are held, so that a history of any length fits.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Protocol
from uuid import UUID

from application.log.event_log import LaneFacts, LaneQuery, Submission
from benchmarks.history.world.identities import SeededIdentities
from domain.run.state import Run
from domain.session.state import Session
from domain.values.record import CONFIG_STREAM, run_stream, session_stream
from infrastructure.outbound.log.append.batch import Batch, SubmissionOutcome
from infrastructure.outbound.log.append.load import LoadedFacts
from infrastructure.outbound.log.codec.mapper import EventMapper


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a transcript; `body` is JSON text."""

    run_id: UUID
    sequence: int
    recorded_at: datetime
    kind: str
    body: str


@dataclass(frozen=True, slots=True)
class Beginning:
    """Beginning of a part of a log: the last position, the configuration revision and the time.
    Everything before it has ended.
    """

    position: int
    revision: int
    at: datetime


class Sink(Protocol):
    """Receiver of the results of a simulation, in order."""

    def append(self, batch: Batch) -> None:
        """Take one commit."""
        ...

    def entries(self, entries: Iterable[Entry]) -> None:
        """Take transcript entries."""
        ...

    def forget_run(self, run_id: UUID) -> None:
        """Forget a run that will not change anymore."""
        ...

    def forget_session(self, session_key: str) -> None:
        """Forget a session that will not change anymore."""
        ...


class Lane:
    """Running and queued runs of one depth, in order."""

    def __init__(self) -> None:
        self.running: dict[UUID, Run] = {}
        self.waiting: dict[UUID, Run] = {}

    def take(self, run: Run) -> None:
        """Update the lane with a run's new state."""
        is_in_lane = run.stage in ("queued", "started")
        if is_in_lane and run.holder is None:
            self.waiting[run.run_id] = run
            return
        self.waiting.pop(run.run_id, None)
        if is_in_lane:
            self.running[run.run_id] = run
        else:
            self.running.pop(run.run_id, None)


class SimulatedLog:
    """Log that decides submissions from states in memory, and passes every batch to a sink."""

    def __init__(self, ids: SeededIdentities, sink: Sink, beginning: Beginning) -> None:
        self._ids = ids
        self._sink = sink
        self._mapper = EventMapper()
        self._held: dict[str, int] = {}
        self._config_version = beginning.revision
        self._recorded_at = beginning.at
        self._chain_hash = b""
        self.position = beginning.position
        self.changed: tuple[str, ...] = ()
        self.runs: dict[UUID, Run] = {}
        self.sessions: dict[str, Session] = {}
        self._by_stream: dict[str, Run | Session] = {}
        self.lanes: dict[int, Lane] = {}

    def append(
        self, submissions: Sequence[Submission[Any]], now: datetime
    ) -> list[SubmissionOutcome]:
        """Decide and record submissions as one commit. Return the outcome of each."""
        batch = Batch(self._loaded(submissions, now), self._mapper, self._ids.event_id)
        outcomes = [batch.decide(submission) for submission in submissions]
        if batch.events:
            self._take(batch)
            self._sink.append(batch)
        return outcomes

    def hold(self, streams: Iterable[str]) -> None:
        """Keep the states of these streams until they are let go of as often."""
        for stream in streams:
            self._held[stream] = self._held.get(stream, 0) + 1

    def let_go(self, streams: Iterable[str]) -> None:
        """Release streams. A state that is not held anymore is forgotten, and cannot be read
        again.
        """
        for stream in streams:
            left = self._held.pop(stream) - 1
            if left:
                self._held[stream] = left
                continue
            state = self._by_stream.pop(stream, None)
            if isinstance(state, Run):
                del self.runs[state.run_id]
                self._sink.forget_run(state.run_id)
            elif state is not None:
                del self.sessions[state.session_key]
                self._sink.forget_session(state.session_key)

    def entries(self, entries: Sequence[Entry]) -> None:
        """Write lines of a transcript."""
        self._sink.entries(entries)

    def _loaded(self, submissions: Sequence[Submission[Any]], now: datetime) -> LoadedFacts:
        named: dict[str, Run | Session | None] = {}
        lanes: dict[LaneQuery, LaneFacts] = {}
        for submission in submissions:
            for stream in submission.streams:
                named[stream] = self._by_stream.get(stream)
            if submission.lane is not None:
                facts = lanes[submission.lane] = self._lane_facts(submission.lane)
                named |= {run_stream(run.run_id): run for run in facts.next}
        return LoadedFacts(
            position=self.position,
            recorded_at=self._recorded_at,
            chain_hash=self._chain_hash,
            now=now,
            runs=tuple(state for state in named.values() if isinstance(state, Run)),
            sessions=tuple(state for state in named.values() if isinstance(state, Session)),
            config_version=self._config_version,
            reserved={},
            lanes=lanes,
        )

    def _lane_facts(self, query: LaneQuery) -> LaneFacts:
        lane = self.lanes.setdefault(query.depth, Lane())
        following = tuple(islice(lane.waiting.values(), query.take))
        return LaneFacts(len(lane.running), following, len(lane.waiting) > query.take)

    def _take(self, batch: Batch) -> None:
        self.position = batch.position
        self._recorded_at = batch.recorded_at
        self._chain_hash = batch.chain_hash
        self.changed = tuple({row.envelope.stream: None for row in batch.events})
        for run_id in batch.rows["runs"].keys:
            run = self.runs[run_id] = batch.fold.runs[run_id]
            self._by_stream[run_stream(run_id)] = run
            if run.lane_depth is not None:
                self.lanes.setdefault(run.lane_depth, Lane()).take(run)
        for key in batch.rows["sessions"].keys:
            session = self.sessions[key] = batch.fold.sessions[key]
            self._by_stream[session_stream(key)] = session
        self._config_version += CONFIG_STREAM in self.changed

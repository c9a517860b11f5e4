"""State of the log as the holder of the append lock knows it, kept across batches: pure."""

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from application.log.event_log import LaneFacts, LaneQuery, Submission, with_follow_ups
from application.projections.run_rows import RUNS
from application.projections.session_rows import SESSIONS
from domain.run.state import Run
from domain.session.state import Session
from domain.values.record import run_id_of, session_key_of
from infrastructure.outbound.log.append.batch import Batch, first_in_line, lane_after
from infrastructure.outbound.log.append.load import (
    LANE_RUNS_MAX,
    LaneKey,
    LoadedFacts,
    ReadRequest,
    ReadResult,
    reservation_key,
)
from infrastructure.outbound.log.read.state_cache import STATE_BYTES, StateCaches

LANES_MAX = 64
UNSEEN_MIN = 16
"""After this many consecutive unseen sessions proved absent from the log, the next one is assumed
absent."""


class Head(NamedTuple):
    """The end of the log, and the table oids of its run and session rows."""

    position: int
    recorded_at: datetime
    chain_hash: bytes
    config_version: int
    runs_table: int = 0
    sessions_table: int = 0


@dataclass(slots=True)
class ReadPlan:
    """Facts for deciding submissions: the known ones, and `wanted`, which must be read. If
    `is_guess` is set, the `unseen` sessions are assumed absent and are not read."""

    runs: dict[UUID, Run]
    sessions: dict[str, Session]
    lanes: dict[LaneKey, LaneFacts]
    lane_queries: Collection[LaneQuery]
    last_entries: dict[UUID, int]
    unseen: Set[str] = frozenset()
    is_guess: bool = False
    wanted: ReadRequest = field(default_factory=ReadRequest)


class Ledger:
    """Cache of the facts for decisions. Valid while the log still ends at the head that it knows,
    in the same tables."""

    unseen_min = UNSEEN_MIN

    def __init__(self, remembered: StateCaches) -> None:
        self._remembered = remembered
        self._head: Head | None = None
        self._lanes: dict[LaneKey, LaneFacts] = {}
        # Number of consecutive unseen sessions that were absent from the log.
        self._absent_in_a_row = 0

    def take(self, head: Head) -> None:
        """Accept a head that was read under the lock. If it differs from the known head, another
        process has written: discard the lanes and distrust the cached states."""
        if head == self._head:
            return
        self._head = head
        self._absent_in_a_row = 0
        self._lanes.clear()
        self._remembered.runs.of(head.runs_table)
        self._remembered.sessions.of(head.sessions_table)
        self._remembered.runs.doubt()
        self._remembered.sessions.doubt()

    def forget(self) -> None:
        """Discard everything: the connection is a new one, and may be to another database."""
        self._head = None
        self._absent_in_a_row = 0
        self._lanes.clear()
        self._remembered.forget()

    def ask(self, submissions: Sequence[Submission[Any]], *, guess: bool) -> ReadPlan:
        """Return the known facts for these submissions, and which facts must be read.

        Args:
            submissions: The submissions to decide, in order.
            guess: Skip reads whose wrong assumption the unique keys of the database would reject:
                streams whose id was just minted, transcript entries that are written together with
                the end of their run, and unseen sessions if the last ones read were absent too.
        """
        submissions = with_follow_ups(submissions)
        minted = (
            {stream for submission in submissions for stream in submission.minted}
            if guess
            else set()
        )
        streams = {stream: None for submission in submissions for stream in submission.streams}
        named = [stream for stream in streams if stream not in minted]
        run_ids = [run_id for stream in named if (run_id := run_id_of(stream)) is not None]
        keys = [key for stream in named if (key := session_key_of(stream)) is not None]
        runs, sessions = self._remembered.runs, self._remembered.sessions
        queries = dict.fromkeys(submission.lane for submission in submissions if submission.lane)
        known_lanes = {
            (query.lane, query.depth): facts
            for query in queries
            if (facts := self._lane(query)) is not None
        }
        question = ReadPlan(runs.certain(run_ids), sessions.certain(keys), known_lanes, queries, {})
        wanted = question.wanted
        wanted.runs, wanted.sessions = runs.uncertain(run_ids), sessions.uncertain(keys)
        unseen = {key for submission in submissions for key in submission.unseen}.intersection(
            wanted.sessions
        )
        question.unseen = unseen.difference(sessions.known(wanted.sessions))
        question.is_guess = guess and self._absent_in_a_row >= self.unseen_min
        if question.is_guess:
            wanted.sessions = [key for key in wanted.sessions if key not in question.unseen]
        reservations = (
            submission.reservation for submission in submissions if submission.reservation
        )
        wanted.reservations = list(dict.fromkeys(map(reservation_key, reservations)))
        unknown = (query for query in queries if self._lane(query) is None)
        wanted.lanes = list(dict.fromkeys((query.lane, query.depth) for query in unknown))
        wanted.trees = list(
            dict.fromkeys(submission.tree for submission in submissions if submission.tree)
        )
        for finished in (
            submission.transcript for submission in submissions if submission.transcript
        ):
            if guess and finished.is_written_on:
                question.last_entries[finished.run_id] = finished.last_entry
            elif finished.run_id not in wanted.transcripts:
                wanted.transcripts.append(finished.run_id)
        return question

    def _lane(self, query: LaneQuery) -> LaneFacts | None:
        facts = self._lanes.get((query.lane, query.depth))
        if facts is None or (facts.may_have_more and len(facts.next) < query.take):
            return None
        return facts

    def facts(self, question: ReadPlan, found: ReadResult, now: datetime) -> LoadedFacts:
        """Return the facts for a batch, and remember the facts that were read."""
        head = self._head
        assert head is not None
        wanted = question.wanted
        self._remembered.runs.confirm(wanted.runs, found.runs)
        self._remembered.sessions.confirm(wanted.sessions, found.sessions)
        if not question.is_guess:
            self._absent_in_a_row += len(question.unseen)
            if not found.sessions.keys().isdisjoint(question.unseen):
                self._absent_in_a_row = 0
        if len(self._lanes) + len(found.lanes) > LANES_MAX:
            self._lanes.clear()
        self._lanes |= found.lanes
        by_place = question.lanes | found.lanes
        lanes = {query: by_place[query.lane, query.depth] for query in question.lane_queries}
        first = (run for query, facts in lanes.items() for run in facts.next[: query.take])
        runs = {run.run_id: run for run in (*first, *found.waiting)} | question.runs | found.runs
        return LoadedFacts(
            position=head.position,
            recorded_at=head.recorded_at,
            chain_hash=head.chain_hash,
            now=now,
            runs=tuple(runs.values()),
            sessions=(*question.sessions.values(), *found.sessions.values()),
            config_version=head.config_version,
            reserved=found.reserved,
            lanes=lanes,
            crowded=found.crowded,
            last_entries=question.last_entries | found.last_entries,
        )

    def keep(self, batch: Batch) -> None:
        """Apply a committed batch to the ledger."""
        assert self._head is not None
        self._head = self._head._replace(
            position=batch.position,
            recorded_at=batch.recorded_at,
            chain_hash=batch.chain_hash,
            config_version=batch.config_version,
        )
        changes = batch.run_changes
        self._lanes = {
            place: first_in_line(lane_after(place, facts, changes), LANE_RUNS_MAX)
            for place, facts in self._lanes.items()
        }
        remembered = self._remembered
        for projection, cache in ((RUNS, remembered.runs), (SESSIONS, remembered.sessions)):
            rows = batch.rows[projection.name]
            sizes = batch.state_bytes.get(projection.name) or [STATE_BYTES] * len(rows.opened)
            for span, size_bytes in zip(rows.opened, sizes, strict=True):
                cache.store(span.row[0], span.row.state, span.from_position, size_bytes)
            cache.confirm(rows.keys, rows.keys)

"""Decide a batch of submissions in order: a pure step from loaded facts to rows to write."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from uuid import UUID

from application.log.envelope import WRITER_VERSION, Envelope, Provenance, RecordedEvent
from application.log.event_log import (
    AlreadyReserved,
    Appended,
    Content,
    ContentKey,
    Decision,
    DecisionContext,
    Following,
    LaneFacts,
    LaneQuery,
    LogUnavailableError,
    Reservation,
    Reserved,
    StagedFile,
    StoredAnswer,
    Submission,
    TranscriptRows,
    TreeQuery,
)
from application.projections.fold import Fold, RowChanges
from application.projections.run_rows import lane_place
from domain.event_types import TYPE_OF, AnyEvent
from domain.run.events import DescendantsSettled, RunArchived, RunClaimed, RunEnded
from domain.run.state import Run
from domain.session.state import Session
from domain.values.record import CONFIG_STREAM, Stamp, run_id_of, session_key_of
from domain.values.refusals import CorruptHistoryError, Rejected
from infrastructure.outbound.log.append.load import (
    ROWS_MAX,
    IdempotencyWrites,
    LaneKey,
    LoadedFacts,
    may_wait,
    reservation_key,
)
from infrastructure.outbound.log.codec.chain import encode_fields, link_hash
from infrastructure.outbound.log.codec.mapper import EventMapper

_log = logging.getLogger("spawnlog.log")


class ChangedRuns(NamedTuple):
    """The runs that a batch started from (`before`, without those that it created) and the current
    state of each run that it changed."""

    before: Mapping[UUID, Run]
    changed: Mapping[UUID, Run]


def lane_after(place: LaneKey, facts: LaneFacts, changes: ChangedRuns) -> LaneFacts:
    """Return the facts of a lane after the changes of a batch."""
    changed = changes.changed
    running = facts.running
    for run_id, run in changed.items():
        known = changes.before.get(run_id)
        running -= known is not None and _takes_a_slot(known, place)
        running += _takes_a_slot(run, place)
    following = [changed.get(run.run_id, run) for run in facts.next]
    if not facts.may_have_more:
        # Every queued run of the lane is known, so runs queued by the batch come after them.
        known_before = {run.run_id for run in following}
        since = [
            run
            for run_id, run in changed.items()
            if run_id not in known_before and lane_place(run) == place
        ]
        following += sorted(since, key=lambda run: run.queued_position or 0)
    waiting = [run for run in following if run.stage == "queued" and run.holder is None]
    return LaneFacts(running, tuple(waiting), facts.may_have_more)


def first_in_line(facts: LaneFacts, take: int) -> LaneFacts:
    """Return the lane with at most `take` waiting runs."""
    if len(facts.next) <= take:
        return facts
    return LaneFacts(facts.running, facts.next[:take], may_have_more=True)


def _takes_a_slot(run: Run, place: LaneKey) -> bool:
    return run.holder is not None and lane_place(run) == place


class StoredRow(NamedTuple):
    """An event with its envelope and stored bytes. `fields` are the encoded fields that its hash
    covers in addition to the previous hash, as returned by `encode_fields`."""

    envelope: Envelope
    event: AnyEvent
    state: bytes
    fields: tuple[bytes, ...]


@dataclass(slots=True)
class SubmissionOutcome:
    """Outcome of one submission: an answer or the error that it raised."""

    appended: Appended[Any] | None = None
    error: BaseException | None = None


class Batch:
    """Submissions decided in order; each one sees the state that the previous one left."""

    def __init__(
        self, loaded: LoadedFacts, mapper: EventMapper, new_id: Callable[[], UUID]
    ) -> None:
        self._loaded = loaded
        self._mapper = mapper
        self._new_id = new_id
        self.fold = Fold(loaded.runs, loaded.sessions)
        self.recorded_at = max(loaded.recorded_at, loaded.now)
        self.position = loaded.position
        self.chain_hash = loaded.chain_hash
        self.events: list[StoredRow] = []
        self.contents: list[Content] = []
        self.keys: list[ContentKey] = []
        self.staged: list[StagedFile] = []
        self.entries: list[TranscriptRows] = []
        self.due_files: dict[UUID, bool] = {}
        self.text_bytes = 0
        self.state_bytes: dict[str, list[int]] = {}
        self.idempotency = IdempotencyWrites()
        self._reserved = dict(loaded.reserved)
        self._runs_before = {run.run_id: run for run in loaded.runs}
        self._runs_changed: dict[UUID, Run] = {}
        self.config_version = loaded.config_version

    @property
    def is_empty(self) -> bool:
        """Return True if there is nothing to write."""
        idempotency = self.idempotency
        return not (self.events or self.contents or idempotency.inserts or idempotency.answers)

    @property
    def recorded(self) -> tuple[RecordedEvent, ...]:
        """Return the events to write, in the form that followers of the log receive."""
        return tuple(RecordedEvent(row.envelope, row.event) for row in self.events)

    @property
    def changed_runs(self) -> Mapping[UUID, Run]:
        """Return the runs that these events changed, in their new state."""
        return self._runs_changed

    @property
    def run_changes(self) -> ChangedRuns:
        return ChangedRuns(self._runs_before, self.changed_runs)

    @property
    def rows(self) -> Mapping[str, RowChanges[Any, Any]]:
        """Return the rows to write, by projection. The whole batch is one transaction."""
        self.fold.end_transaction()
        return self.fold.rows

    def decide(self, submission: Submission[Any]) -> SubmissionOutcome:
        """Decide one submission and its follow-ups, and apply their changes.

        If the submission is rejected or its decision fails, the batch is unchanged. If a follow-up
        fails, the remaining follow-ups are skipped and the submission still succeeds.

        Raises:
            CorruptHistoryError: The recorded history is inconsistent. It is raised instead of
                returned, because the batch is unusable afterwards.
        """
        decision = self._decide_alone(submission)
        if isinstance(decision, Exception):
            return SubmissionOutcome(error=decision)
        streams = {*submission.streams, *(stream for stream, _ in decision.changes)}
        for following in submission.follow_ups:
            outcome = self.decide(following)
            if outcome.error is not None:
                if not isinstance(outcome.error, Rejected):
                    _log.error(
                        "a follow-up decision failed; the remaining follow-ups are skipped",
                        exc_info=outcome.error,
                    )
                break
        return SubmissionOutcome(self._appended(decision.result, streams))

    def _decide_alone(self, submission: Submission[Any]) -> Decision[Any] | Exception:
        reservation = submission.reservation
        key = reservation_key(reservation) if reservation else None
        try:
            if key is not None and key in self._reserved:
                raise AlreadyReserved(self._reserved[key])
            decision = submission.decide(self._world(submission))
            parts: list[tuple[Submission[Any] | Following, Decision[Any]]] = [
                (submission, decision),
                *((part, part.decision) for part in decision.following),
            ]
            encoded = [self._encode_events(part_decision) for _, part_decision in parts]
        except CorruptHistoryError:
            raise
        except Exception as error:
            return error
        if reservation is not None:
            self._reserve(reservation, decision)
        for (source, part_decision), states in zip(parts, encoded, strict=True):
            self._apply(source, part_decision, states)
        return decision

    def _encode_events(self, decision: Decision[Any]) -> list[bytes]:
        texts = (*decision.contents, *decision.keys, *decision.staged, *decision.entries)
        if texts and not decision.changes:
            raise ValueError("texts are kept with events that refer to them, or not at all")
        return [self._mapper.state(event) for _, event in decision.changes]

    def _apply(
        self,
        source: Submission[Any] | Following,
        decision: Decision[Any],
        states: Sequence[bytes],
    ) -> None:
        self._record(source, decision, states)
        self.contents.extend(decision.contents)
        self.text_bytes += sum(content.ref.bytes for content in decision.contents)
        self.keys.extend(decision.keys)
        self.staged.extend(decision.staged)
        self.text_bytes += sum(len(file.body) for file in decision.staged)
        self.entries.extend(decision.entries)
        self.text_bytes += sum(len(body) for rows in decision.entries for body in rows.bodies)
        if decision.run_answer is not None:
            self._answer_run(*decision.run_answer)

    def _appended(self, result: Any, streams: Iterable[str]) -> Appended[Any]:
        """Return the result with the states as of now: a later submission of the batch may change
        them."""
        runs: dict[UUID, Run] = {}
        sessions: dict[str, Session] = {}
        for stream in streams:
            run_id, key = run_id_of(stream), session_key_of(stream)
            if run_id is not None and run_id in self.fold.runs:
                runs[run_id] = self.fold.runs[run_id]
            elif key is not None and key in self.fold.sessions:
                sessions[key] = self.fold.sessions[key]
        return Appended(result, self.position, runs, sessions)

    def _world(self, submission: Submission[Any]) -> DecisionContext:
        return DecisionContext(
            runs=self.fold.runs,
            sessions=self.fold.sessions,
            now=self.recorded_at,
            lane=self._lane(submission.lane) if submission.lane else None,
            config_version=self.config_version,
            tree=self._tree(submission.tree) if submission.tree else (),
            last_entries=self._loaded.last_entries,
        )

    def _tree(self, query: TreeQuery) -> tuple[Run, ...]:
        """Return the runs of a tree that wait for others or may come to: those that were loaded,
        with the changes of earlier submissions of this batch, and those that it added."""
        if query in self._loaded.crowded:
            raise LogUnavailableError(
                f"more than {ROWS_MAX} runs of this tree wait for others, or are linked to such"
                " runs; stop some, or retry when fewer wait"
            )
        return tuple(run for run in self.fold.runs.values() if may_wait(run, query.root))

    def _lane(self, query: LaneQuery) -> LaneFacts:
        before = self._loaded.lanes[query]
        now = lane_after((query.lane, query.depth), before, self.run_changes)
        return first_in_line(now, query.take)

    def _record(
        self,
        source: Submission[Any] | Following,
        decision: Decision[Any],
        states: Sequence[bytes],
    ) -> None:
        last = self.position + len(decision.changes)
        previous: UUID | None = None
        for (stream, event), state in zip(decision.changes, states, strict=True):
            version = self._next_version(stream)
            type_name, type_version = TYPE_OF[type(event)]
            position, event_id = self.position + 1, self._new_id()
            # The fields of an envelope in order, without its hash.
            envelope = (
                position,
                stream,
                version,
                type_name,
                type_version,
                self.recorded_at,
                self._loaded.now,
                event_id,
                source.command_id,
                self._provenance(source, stream, event, previous),
                WRITER_VERSION,
                last,
            )
            fields = encode_fields(*envelope, state)
            digest = link_hash(self.chain_hash, b"".join(fields))
            self.fold.apply(stream, event, Stamp(position, version, self.recorded_at, event_id))
            run_id = run_id_of(stream)
            if run_id is not None:
                self._runs_changed[run_id] = self.fold.runs[run_id]
                if type(event) in (RunEnded, RunArchived):
                    self._note_file(run_id)
            self.position, self.chain_hash = position, digest
            previous = event_id
            self.events.append(StoredRow(Envelope(*envelope, digest), event, state, fields))

    def _note_file(self, run_id: UUID) -> None:
        run = self.fold.runs[run_id]
        if run.transcript is not None and run.transcript_path is not None:
            self.due_files[run_id] = run.stage == "archived"

    def _provenance(
        self,
        append: Submission[Any] | Following,
        stream: str,
        event: AnyEvent,
        previous: UUID | None,
    ) -> Provenance:
        """Return the provenance of an event. If an append concerns several runs, each event names
        its own run, tree and cause."""
        source = append.provenance
        named = getattr(event, "run_id", None) if append.about else None
        about = named if named in append.about else source.run_id
        run_id = run_id_of(stream) or about
        run = self.fold.runs.get(run_id) if run_id is not None else None
        last = run.last_event_id if run is not None else None
        others = run_id != source.run_id and type(event) is not DescendantsSettled
        if others or type(event) is RunClaimed:
            cause = last
        elif previous is not None:
            cause = previous
        else:
            # The request of an outside caller has no causing event, unless it names one.
            cause = source.causation or (last if source.actor.kind == "system" else None)
        return Provenance(
            actor=source.actor,
            correlation=run.requester.root_session_key if run is not None else source.correlation,
            causation=cause,
            run_id=run_id,
            traceparent=source.traceparent,
            config_revision=run.config_revision if run is not None else source.config_revision,
        )

    def _next_version(self, stream: str) -> int:
        if stream == CONFIG_STREAM:
            self.config_version += 1
            return self.config_version
        return self.fold.version_of(stream) + 1

    def _reserve(self, reservation: Reservation, decision: Decision[Any]) -> None:
        key = reservation_key(reservation)
        self.idempotency.inserts.append((reservation, decision.reserve_run, decision.answer))
        self._reserved[key] = Reserved(
            reservation.fingerprint, decision.reserve_run, decision.answer
        )

    def _answer_run(self, run_id: UUID, answer: StoredAnswer) -> None:
        here = [name for name, reserved in self._reserved.items() if reserved.run_id == run_id]
        # The only idempotency keys of a run admitted in this batch are those of the batch.
        is_new = run_id in self.fold.runs and run_id not in self._runs_before
        if here or not is_new:
            # Keep the first answer: later ones were decided without knowing it.
            self.idempotency.answers.setdefault(run_id, answer)
        for name in here:
            if self._reserved[name].answer is None:
                self._reserved[name] = replace(self._reserved[name], answer=answer)

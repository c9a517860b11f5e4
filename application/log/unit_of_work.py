"""The unit of work: reads for use cases, and the only way for them to record."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar
from uuid import UUID

from application.log.envelope import SYSTEM, Actor, Provenance
from application.log.event_log import (
    Appended,
    ContentKey,
    Decision,
    DecisionContext,
    EventLog,
    FinishedTranscript,
    LaneQuery,
    LogUnavailableError,
    Reservation,
    StoredAnswer,
    Submission,
    TranscriptRows,
    TreeQuery,
)
from application.log.texts import Contents, ContentsErased, SessionTexts, TextStore, has_texts
from application.ports.configurations import Configurations
from application.ports.identifiers import Identities
from application.ports.registry import Registry
from application.ports.transcripts import UnwrittenEntries
from domain.context.fork import told_entry
from domain.run.commands import EndRun, RunCommand, StartRun
from domain.run.events import RunEvent
from domain.run.facts import TranscriptSeal
from domain.run.state import Run
from domain.session.state import Session
from domain.spawn.batch import Speculation, batch_members, decide_for_all
from domain.spawn.cascade import CascadeState, SessionWentOn, streams_of
from domain.values.record import run_stream
from domain.values.refusals import ReadAgain, Rejected, TranscriptGrew

ATTEMPTS_MAX = 5
T = TypeVar("T")
E = TypeVar("E", bound=RunEvent)


async def with_fresh_reads(
    attempt: Callable[[Rejected | None], Awaitable[T]],
    unavailable: str,
    *,
    conflicts: tuple[type[Rejected], ...] = (ReadAgain,),
    attempts_max: int = ATTEMPTS_MAX,
) -> T:
    """Retry `attempt` with fresh reads after each conflict (optimistic concurrency).

    Args:
        attempt: Reads, decides and records. It is given the conflict of the previous attempt, None
            at first.
        unavailable: Message of the error if all attempts fail.
        conflicts: Errors that lead to another attempt.
        attempts_max: Maximum number of attempts.

    Raises:
        LogUnavailableError: If every attempt met a conflict.
    """
    conflict: Rejected | None = None
    for _ in range(attempts_max):
        try:
            return await attempt(conflict)
        except conflicts as met:
            conflict = met
    raise LogUnavailableError(unavailable)


@dataclass(frozen=True, slots=True)
class RunCommands:
    """Commands to a run, decided in order, and the store of their texts."""

    run: Run
    commands: Sequence[RunCommand]
    text_store: TextStore | None = None


class EndedTranscript(Protocol):
    """The transcript of a run that ends."""

    @property
    def last_entry(self) -> int:
        """Return the number of the last known row; 0 if there is none."""
        ...

    @property
    def is_written_on(self) -> bool:
        """Return True if more rows are written with the end."""
        ...

    def seal(self, recorded_at: datetime) -> TranscriptSeal:
        """Seal all entries, including those written with the end, as recorded at `recorded_at`."""
        ...

    def rows(self, run: Run, recorded_at: datetime) -> Sequence[TranscriptRows]:
        """Return the rows to write with the end, as recorded at `recorded_at`."""
        ...


@dataclass(frozen=True, slots=True)
class CommandLog:
    """Log for commands: each submission gets a new command id and its provenance."""

    log: EventLog
    identities: Identities

    async def submit(
        self,
        streams: Sequence[str],
        decide: Callable[[DecisionContext], Decision[T]],
        provenance: Provenance,
        *,
        lane: LaneQuery | None = None,
        tree: TreeQuery | None = None,
        reservation: Reservation | None = None,
        about: frozenset[UUID] = frozenset(),
        transcript: FinishedTranscript | None = None,
        minted: Sequence[str] = (),
        unseen: Sequence[str] = (),
        follow_ups: Sequence[Submission[Any]] = (),
    ) -> Appended[T]:
        """Decide under the log's lock and record the decision. `decide` must be pure.

        Raises:
            AlreadyReserved: If the idempotency key was used before.
            LogUnavailableError: If the log cannot be reached.
            Rejected: As raised by `decide`.
        """
        return await self.log.submit(
            Submission(
                command_id=self.identities.event_id(),
                streams=tuple(streams),
                decide=decide,
                provenance=provenance,
                lane=lane,
                tree=tree,
                reservation=reservation,
                about=about,
                transcript=transcript,
                minted=minted,
                unseen=unseen,
                follow_ups=follow_ups,
            )
        )

    async def require_new(
        self,
        provenance: Provenance,
        reservation: Reservation | None,
        why: Rejected | None = None,
    ) -> None:
        """Refuse a request that was answered before, whatever has changed since. Records nothing.

        No-op if the request has no idempotency key.

        Raises:
            AlreadyReserved: If the key was used before. It holds the stored answer.
            Rejected: `why`, if it is given and the key is unused.
        """
        if reservation is None:
            return

        def decide(_: DecisionContext) -> Decision[None]:
            raise why or _KeyIsFree("the idempotency key is unused")

        try:
            await self.submit((), decide, provenance, reservation=reservation)
        except _KeyIsFree:
            return

    async def record(
        self,
        run: Run,
        commands: Sequence[RunCommand],
        text_store: TextStore | None = None,
        *,
        actor: Actor = SYSTEM,
        spawn_answer: StoredAnswer | None = None,
        reservation: Reservation | None = None,
        answer: StoredAnswer | None = None,
        above: SessionTexts | None = None,
    ) -> Appended[None]:
        """Decide commands to a run in order, and record the result in one append.

        Args:
            spawn_answer: Answer to the caller of the run's spawn.
            answer: Answer to the caller of this command.
            above: Texts for the session of the run's requester.
        """
        run_commands = RunCommands(run, commands, text_store)
        return await self.record_all(
            (run_commands,),
            actor=actor,
            spawn_answer=spawn_answer,
            reservation=reservation,
            answer=answer,
            above=above,
        )

    async def record_start(
        self,
        run: Run,
        start: StartRun,
        text_store: TextStore | None,
        first_entry: UnwrittenEntries,
        *,
        actor: Actor = SYSTEM,
    ) -> Appended[None]:
        """Record the start of a run, and `first_entry` as the first entry of its own in its
        transcript."""

        def decide(world: DecisionContext) -> Decision[None]:
            decision = decide_commands(world, (RunCommands(run, (start,), text_store),))
            return with_first_entry(decision, first_entry, run, world.now)

        return await self.submit(
            tuple(dict.fromkeys(streams_of(run))),
            decide,
            provenance_of(run, actor),
            about=frozenset((run.run_id,)),
        )

    async def record_end(
        self,
        run: Run,
        command: EndRun,
        text_store: TextStore,
        transcript: EndedTranscript | None,
        follow_ups: Sequence[Submission[Any]],
        actor: Actor = SYSTEM,
    ) -> Appended[None]:
        """Record the end of a run with the seal of its transcript, if it has one.

        Raises:
            TranscriptGrew: If there are rows that `transcript` does not know. A holder that was
                only frozen may have resumed, and its claim is valid until this append.
        """

        def decide(world: DecisionContext) -> Decision[None]:
            if transcript is None:
                return decide_commands(world, (RunCommands(run, (command,), text_store),))
            sealed = command.changed({"transcript": transcript.seal(world.now)})
            decision = decide_commands(world, (RunCommands(run, (sealed,), text_store),))
            last = world.last_entries.get(run.run_id, 0)
            if last != transcript.last_entry:
                text = f"sealed up to entry {transcript.last_entry}, and there are {last}"
                raise TranscriptGrew(text)
            return decision._replace(entries=transcript.rows(run, world.now))

        finished = None
        if transcript is not None:
            known = (transcript.last_entry, transcript.is_written_on)
            finished = FinishedTranscript(run.run_id, *known)
        return await self.submit(
            tuple(dict.fromkeys(streams_of(run))),
            decide,
            provenance_of(run, actor),
            about=frozenset((run.run_id,)),
            transcript=finished,
            follow_ups=follow_ups,
        )

    def follow_up(
        self, run: Run, decide: Callable[[DecisionContext], Decision[None]]
    ) -> Submission[None]:
        """Return a submission that may follow a command to the run in the same transaction.

        `decide` must be pure. It may raise `Rejected` if the follow-up must happen differently or
        later.
        """
        return Submission(
            command_id=self.identities.event_id(),
            streams=tuple(dict.fromkeys(streams_of(run))),
            decide=decide,
            provenance=provenance_of(run),
            about=frozenset((run.run_id,)),
        )

    async def record_all(
        self,
        run_commands: Sequence[RunCommands],
        *,
        actor: Actor = SYSTEM,
        spawn_answer: StoredAnswer | None = None,
        reservation: Reservation | None = None,
        answer: StoredAnswer | None = None,
        above: SessionTexts | None = None,
        require_fit: Callable[[CascadeState], None] | None = None,
    ) -> Appended[None]:
        """Decide commands to several runs of one requester in order, and record them in one append.

        `require_fit` may raise `Rejected` before anything is decided. See `record` for the other
        arguments.
        """
        first = run_commands[0].run
        streams = [stream for member in run_commands for stream in streams_of(member.run)]

        def decide(world: DecisionContext) -> Decision[None]:
            if require_fit is not None:
                require_fit(CascadeState(world.runs, world.sessions))
            if above is not None:
                above.require_fit(world.sessions.get(first.requester.session_key))
            return decide_commands(world, run_commands, spawn_answer, above)._replace(answer=answer)

        async def submit(conflict: Rejected | None) -> Appended[None]:
            if isinstance(conflict, SessionWentOn):
                streams.append(run_stream(conflict.run_id))
            return await self.submit(
                tuple(dict.fromkeys(streams)),
                decide,
                provenance_of(first, actor),
                reservation=reservation,
                about=frozenset(member.run.run_id for member in run_commands),
            )

        return await with_fresh_reads(
            submit,
            "the parent session changes too fast; retry in a moment",
            conflicts=(SessionWentOn,),
        )


@dataclass(frozen=True, slots=True)
class UnitOfWork(CommandLog):
    """The log and the readers that every use case works with, assembled by the composition root."""

    registry: Registry
    contents: Contents
    configurations: Configurations

    async def text_store(self, run: Run) -> TextStore:
        """Return a text store for the run's own session.

        Raises:
            ContentsErased: If the session's texts were erased.
        """
        key = await self.contents.key(run.session_id)
        if key is None:
            raise ContentsErased(f"the texts of session {run.session_id} were erased")
        return TextStore(run.session_id, key, self.identities.event_id)

    async def text_store_or_none(self, run: Run) -> TextStore | None:
        """Return a text store for the run's own session; None if the session's texts were
        erased."""
        try:
            return await self.text_store(run)
        except ContentsErased:
            return None

    async def session_texts(self, session: Session | None) -> SessionTexts:
        """Return a text store for a session that may have no texts yet.

        A session that is not on record gets a new id.

        Raises:
            ContentsErased: If the session's texts were erased.
        """
        ids = self.identities
        session_id = session.session_id if session is not None else ids.run_id()
        key = await self.contents.key(session_id) if session is not None else None
        if key is None and session is not None and has_texts(session):
            raise ContentsErased(f"the texts of session {session.display_key} were erased")
        minted = key or ids.content_key()
        text_store = TextStore(session_id, minted, ids.event_id)
        return SessionTexts(session_id, text_store, ContentKey(session_id, minted), key is None)

    async def run(self, run_id: UUID) -> Run:
        """Return a run that is known to be on record."""
        run = await self.registry.run(run_id)
        assert run is not None
        return run

    async def event(self, kind: type[E], run_id: UUID) -> E:
        """Return the first event of a kind about a run, which is known to be on record."""
        recorded = await self.log.first(kind.__name__, run_id)
        assert recorded is not None
        assert isinstance(recorded.event, kind)
        return recorded.event


def decide_commands(
    world: DecisionContext,
    run_commands: Sequence[RunCommands],
    spawn_answer: StoredAnswer | None = None,
    above: SessionTexts | None = None,
) -> Decision[None]:
    """Decide commands to several runs of one requester, with their texts."""
    family = Speculation(CascadeState(world.runs, world.sessions), world.now)
    return decide_ahead(family, run_commands, spawn_answer, above)


def decide_ahead(
    ahead: Speculation,
    run_commands: Sequence[RunCommands],
    spawn_answer: StoredAnswer | None = None,
    above: SessionTexts | None = None,
) -> Decision[None]:
    """Decide commands to runs that are partly not recorded yet, and add the changes to `ahead`."""
    changes = decide_for_all(
        ahead, [(member.run.run_id, member.commands) for member in run_commands]
    )
    answer = spawn_answer if changes else None
    contents = [
        text
        for member in run_commands
        if member.text_store and changes
        for text in member.text_store.contents
    ]
    return Decision(
        None,
        changes,
        (*contents, *(above.contents if above else ())),
        above.keys if above else (),
        run_answer=(batch_members(run_commands[0].run)[0], answer) if answer else None,
    )


def with_first_entry(
    decision: Decision[None], entry: UnwrittenEntries, run: Run, now: datetime
) -> Decision[None]:
    """Add the message to the run to the decision that starts it.

    It is the first entry of the run's own, after the entries of a fork.
    """
    if not decision.changes:
        return decision
    first = told_entry(run.fork)
    rows = TranscriptRows(run.run_id, first, entry.instants(now), entry.kinds, entry.bodies)
    return decision._replace(entries=(rows,))


def provenance_of(run: Run, actor: Actor = SYSTEM) -> Provenance:
    """Return the provenance of an append about a run."""
    return Provenance(
        actor=actor,
        correlation=run.requester.root_session_key,
        run_id=run.run_id,
        config_revision=run.config_revision,
    )


class _KeyIsFree(Rejected):
    """Signal that the idempotency key is unused."""

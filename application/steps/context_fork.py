"""The step that starts a child with its requester's conversation."""

import asyncio
from dataclasses import dataclass
from typing import cast
from uuid import UUID

from application.log.unit_of_work import UnitOfWork
from application.ports.runtimes import EntryKind, TranscriptEntry
from application.ports.transcripts import Transcripts
from application.steps.step import StepPlace, StepRefusedError, StepResult, UndoError
from application.steps.thread_binding import requester_origin
from domain.context.fork import (
    SESSION_KIND,
    ContextRequest,
    ParentExtent,
    fork_failed_refusal,
    lost_transcript_refusal,
    no_transcript_refusal,
    other_agent_refusal,
    resolve_context_request,
    unreadable_transcript_refusal,
)
from domain.delivery.provided_transcript import (
    InvalidTranscriptError,
    ProvidedEntry,
    entries_of_text,
    last_usage_tokens,
)
from domain.run.facts import ForkFacts, Plan, StepName, StepState, UndoOutcome
from domain.run.state import Run
from domain.session.state import ProvidedTranscript
from domain.values.record import ContentRef
from domain.values.refusals import LostClaim

# The requested context of a child.


async def read_context_request(work: UnitOfWork, run: Run) -> ContextRequest:
    """Return the requested context; without one, the default for threads of the requester's
    channel.

    A respawn with a transcript forks the transcript of the earlier run.
    """
    if run.takes_transcript_over:
        return ContextRequest("fork", is_explicit=True)
    if run.options.context is not None or not run.thread or run.requester.origin is None:
        return resolve_context_request(
            run.options.context, thread=run.thread, channel=None, default="isolated"
        )
    origin = await requester_origin(run, work.contents)
    channel, account = (
        str(origin[name]) if name in origin else None for name in ("channel", "accountId")
    )
    pinned = await work.configurations.at(run.config_revision)
    policy = pinned.configuration.threads_of(channel, account)
    return resolve_context_request(
        None, thread=True, channel=channel, default=policy.default_spawn_context
    )


async def read_extent(transcripts: Transcripts, run_id: UUID, *, last: int) -> ParentExtent:
    """Return the extent of a run's transcript up to entry number `last`."""
    extent = await transcripts.extent_to(run_id, last=last)
    return ParentExtent(
        entries=extent.entries, bytes=extent.bytes, last_usage_tokens=extent.last_usage_tokens
    )


# The requester's transcript at the time of the request.


RUNS_MAX = 10_000
"""A conversation of more runs has more tokens than a child can start with."""


@dataclass(frozen=True, slots=True)
class Parent:
    """A requester with a transcript, or the original run of a respawn.

    Attributes:
        run_id: Its last run; None if it lives elsewhere.
        provided: Its entries, if it lives elsewhere.
        written: Otherwise its runs, oldest first, with the number of entries to take of each.
    """

    session_id: UUID
    run_id: UUID | None
    extent: ParentExtent
    provided: tuple[ProvidedEntry, ...] = ()
    written: tuple[tuple[UUID, int], ...] = ()


class ParentTranscripts:
    """Reader of requesters' transcripts, from the record, so that a retry finds the same."""

    def __init__(self, work: UnitOfWork, transcripts: Transcripts) -> None:
        self._work = work
        self._transcripts = transcripts

    async def is_there(self, run: Run) -> bool:
        """Return True if the requester of this run has a transcript."""
        if run.takes_transcript_over or run.requester.run_id is not None:
            return True
        known = await self._provided(run)
        return known is not None and await self._is_stored(known[1].content)

    async def of(self, run: Run) -> Parent | None:
        """Return the requester of this run as of the request; None if it has no transcript.

        Raises:
            InvalidTranscriptError: If its stored transcript is unreadable.
            StepRefusedError: If the earlier run no longer has the requested entries.
        """
        if run.takes_transcript_over:
            return await self._earlier(run)
        if run.requester.run_id is not None:
            return await self._spawned_here(run, run.requester.run_id)
        known = await self._provided(run)
        text = await self._work.contents.text(known[1].content) if known is not None else None
        if known is None or text is None:
            return None
        session_id, transcript = known
        entries = await asyncio.to_thread(entries_of_text, text)
        extent = ParentExtent(
            entries=len(entries),
            bytes=transcript.content.bytes,
            total_tokens=transcript.tokens,
            last_usage_tokens=last_usage_tokens(entries),
        )
        return Parent(session_id, None, extent, entries)

    async def entries(self, parent: Parent) -> tuple[TranscriptEntry, ...]:
        """Return all entries of the parent."""
        if parent.run_id is None:
            return tuple(
                TranscriptEntry(cast(EntryKind, entry.kind), entry.body)
                for entry in parent.provided
            )
        entries: list[TranscriptEntry] = []
        for run_id, count in parent.written:
            rows = await self._transcripts.read(run_id, after=0, limit=count)
            entries += (TranscriptEntry(cast(EntryKind, row.kind), row.body) for row in rows)
        return tuple(entries)

    async def _earlier(self, run: Run) -> Parent:
        respawn = run.respawn
        assert respawn is not None
        assert respawn.transcript_up_to is not None
        earlier, last = await self._work.run(respawn.run_id), respawn.transcript_up_to
        extent = await read_extent(self._transcripts, earlier.run_id, last=last)
        is_erased = await self._work.contents.key(earlier.session_id) is None
        if is_erased or extent.entries < last:
            raise StepRefusedError(lost_transcript_refusal(earlier.run_id))
        written = ((earlier.run_id, last),)
        return Parent(earlier.session_id, earlier.run_id, extent, written=written)

    async def _spawned_here(self, run: Run, requester_run_id: UUID) -> Parent:
        own = await self._work.run(requester_run_id)
        runs = await self._runs_before(own)
        parts = [await self._transcripts.extent(run_id, until=run.created_at) for run_id in runs]
        extent = ParentExtent(
            entries=sum(part.entries for part in parts),
            bytes=sum(part.bytes for part in parts),
            # The last usage covers the whole conversation, because a runtime counts all its input.
            last_usage_tokens=next(
                (part.last_usage_tokens for part in reversed(parts) if part.last_usage_tokens), None
            ),
        )
        written = tuple(
            (run_id, part.entries) for run_id, part in zip(runs, parts, strict=True) if part.entries
        )
        return Parent(own.session_id, own.run_id, extent, written=written)

    async def _runs_before(self, own: Run) -> list[UUID]:
        """Return the runs of the requester's session up to this one, oldest first."""
        if own.continues is None or own.child_session_key is None:
            return [own.run_id]
        runs = await self._work.registry.runs_of_session(own.child_session_key, limit=RUNS_MAX)
        upto = own.created_position
        return [run.run_id for run in reversed(runs) if run.created_position <= upto]

    async def _provided(self, run: Run) -> tuple[UUID, ProvidedTranscript] | None:
        session = await self._work.registry.session(
            run.requester.session_key, at=run.created_position
        )
        if session is None or session.transcript is None:
            return None
        return session.session_id, session.transcript

    async def _is_stored(self, content: ContentRef) -> bool:
        return content.id in await self._work.contents.previews((content,))


LIMIT_SECONDS = 30.0


class ContextForkStep:
    """Step that copies the entries to the start of the child's transcript, and to a file for its
    runtime.

    Implements `StepMaker`.
    """

    name: StepName = "context_fork"
    limit_seconds = LIMIT_SECONDS

    def __init__(self, work: UnitOfWork, transcripts: Transcripts) -> None:
        self._work = work
        self._transcripts = transcripts
        self._parents = ParentTranscripts(work, transcripts)

    async def place(self, run: Run, _: Plan) -> StepPlace | None:
        """Return the file's place; None if the child starts without a conversation.

        Raises:
            StepRefusedError: If the request explicitly asks for a fork that is impossible.
        """
        request = await read_context_request(self._work, run)
        if request.mode == "isolated":
            return None
        if not run.is_of_same_agent and not run.takes_transcript_over:
            if request.is_explicit:
                raise StepRefusedError(other_agent_refusal())
            return None
        if request.is_explicit and not await self._parents.is_there(run):
            raise StepRefusedError(no_transcript_refusal())
        assert run.agent_id is not None
        return StepPlace(*self._transcripts.fork_snapshot_place(run.session_id, run.agent_id))

    async def make(self, run: Run, _: StepState, *, is_resumed: bool) -> StepResult:
        """Write the rows and the file. If the conversation is empty or too long, the child starts
        without it."""
        try:
            async with asyncio.timeout(self.limit_seconds):
                return await self._fork_result(run, is_resumed=is_resumed)
        except (OSError, TimeoutError):
            raise StepRefusedError(fork_failed_refusal()) from None
        except InvalidTranscriptError:
            raise StepRefusedError(unreadable_transcript_refusal()) from None

    async def undo(self, run: Run, _: StepState) -> UndoOutcome:
        """Delete the rows and the file."""
        assert run.agent_id is not None
        had_rows = await self._transcripts.drop_fork(run.run_id)
        try:
            had_file = await self._transcripts.drop_fork_snapshot(run.session_id, run.agent_id)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise UndoError(f"the forked transcript cannot be removed: {reason}") from None
        return "undone" if had_rows or had_file else "nothing_there"

    async def _fork_result(self, run: Run, *, is_resumed: bool) -> StepResult:
        parent = await self._parents.of(run)
        if parent is None and run.options.context is not None:
            raise StepRefusedError(no_transcript_refusal())
        if parent is not None and parent.extent.fits:
            return await self._fork(run, parent)
        if is_resumed:
            await self._write(run, ())
        facts = ForkFacts(
            source_session_id=parent.session_id if parent else None,
            position=run.created_position,
            entries=parent.extent.entries if parent else 0,
            tokens=parent.extent.tokens if parent else None,
            mode="isolated",
        )
        return StepResult(outcome="isolated", made=False, fork=facts)

    async def _fork(self, run: Run, parent: Parent) -> StepResult:
        entries = await self._parents.entries(parent)
        facts = ForkFacts(
            source_session_id=parent.session_id,
            position=run.created_position,
            entries=len(entries),
            tokens=parent.extent.tokens,
            mode="fork",
        )
        await self._write(run, (_header(run, parent, facts), *entries))
        assert run.agent_id is not None
        await self._transcripts.write_fork_snapshot(
            run.run_id,
            session_id=run.session_id,
            agent_id=run.agent_id,
            count=len(entries) + 1,
        )
        return StepResult(outcome="forked", fork=facts)

    async def _write(self, run: Run, entries: tuple[TranscriptEntry, ...]) -> None:
        """Replace the entries of an earlier attempt."""
        assert run.agent_id is not None
        await self._transcripts.drop_fork_snapshot(run.session_id, run.agent_id)
        if not await self._transcripts.fork(run.run_id, run.epoch, entries):
            raise LostClaim(0, run.epoch)


def _header(run: Run, parent: Parent, facts: ForkFacts) -> TranscriptEntry:
    body: dict[str, object] = {
        "parentSessionKey": run.requester.session_key,
        "parentSessionId": str(parent.session_id),
        "entries": facts.entries,
        "tokens": facts.tokens,
    }
    if parent.run_id is not None:
        body["parentRunId"] = str(parent.run_id)
    if run.takes_transcript_over:
        # The conversation belongs to another session than the requester's.
        del body["parentSessionKey"]
        body["respawnedFrom"] = str(parent.run_id)
    return TranscriptEntry(SESSION_KIND, body)

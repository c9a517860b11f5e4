"""The step that lets a child begin with the conversation of who asked for it."""

import asyncio
from dataclasses import dataclass
from typing import cast
from uuid import UUID

from application.log.unit_of_work import UnitOfWork
from application.ports.runtimes import EntryKind, TranscriptEntry
from application.ports.transcripts import Transcripts
from application.steps.step import StepPlace, StepRefused, StepResult, UndoFailed
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
    NotATranscript,
    ProvidedEntry,
    entries_of_text,
    last_usage_tokens,
)
from domain.run.facts import ForkFacts, Plan, StepName, StepState, UndoOutcome
from domain.run.state import Run
from domain.session.state import ProvidedTranscript
from domain.values.record import ContentRef
from domain.values.refusals import LostClaim

# The context that a child is to have, from its request and the configuration it was admitted
# under.


async def read_context_request(work: UnitOfWork, run: Run) -> ContextRequest:
    """What the request says, else what holds for threads where its requester is. One that was made
    from an earlier run begins with that one's transcript, if it is to begin with any of it."""
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
    """How much a run has said up to the entry of that number."""
    extent = await transcripts.extent_to(run_id, last=last)
    return ParentExtent(
        entries=extent.entries, bytes=extent.bytes, last_usage_tokens=extent.last_usage_tokens
    )


# What a requester had said by the moment at which it asked for a child.


RUNS_MAX = 10_000
"""A conversation of more runs than that has more tokens than a child can begin with."""


@dataclass(frozen=True, slots=True)
class Parent:
    """A requester that said something, or the run that a child was respawned from. `provided` are
    its entries when it lives elsewhere, else they stand in the rows of its runs: of each so many,
    the earliest first. `run_id` is the last of them."""

    session_id: UUID
    run_id: UUID | None
    extent: ParentExtent
    provided: tuple[ProvidedEntry, ...] = ()
    written: tuple[tuple[UUID, int], ...] = ()


class ParentTranscripts:
    """Reads them from the record, so that a repeat finds the same."""

    def __init__(self, work: UnitOfWork, transcripts: Transcripts) -> None:
        self._work = work
        self._transcripts = transcripts

    async def is_there(self, run: Run) -> bool:
        """Whether there is a transcript of the requester of this run."""
        if run.takes_transcript_over or run.requester.run_id is not None:
            return True
        known = await self._provided(run)
        return known is not None and await self._is_stored(known[1].content)

    async def of(self, run: Run) -> Parent | None:
        """The requester of this run as it was then; None when nothing is known of what it said.
        Raises `NotATranscript` when what is kept of it cannot be read. `StepRefused` when the run
        that it is to begin with has not got as much any more."""
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
        """All that it had said."""
        if parent.run_id is None:
            return tuple(
                TranscriptEntry(cast(EntryKind, one.kind), one.body) for one in parent.provided
            )
        entries: list[TranscriptEntry] = []
        for run_id, count in parent.written:
            rows = await self._transcripts.read(run_id, after=0, limit=count)
            entries += (TranscriptEntry(cast(EntryKind, one.kind), one.body) for one in rows)
        return tuple(entries)

    async def _earlier(self, run: Run) -> Parent:
        respawn = run.respawn
        assert respawn is not None
        assert respawn.transcript_up_to is not None
        earlier, last = await self._work.run(respawn.run_id), respawn.transcript_up_to
        extent = await read_extent(self._transcripts, earlier.run_id, last=last)
        is_erased = await self._work.contents.key(earlier.session_id) is None
        if is_erased or extent.entries < last:
            raise StepRefused(lost_transcript_refusal(earlier.run_id))
        written = ((earlier.run_id, last),)
        return Parent(earlier.session_id, earlier.run_id, extent, written=written)

    async def _spawned_here(self, run: Run, requester_run_id: UUID) -> Parent:
        own = await self._work.run(requester_run_id)
        runs = await self._runs_before(own)
        parts = [await self._transcripts.extent(one, until=run.created_at) for one in runs]
        extent = ParentExtent(
            entries=sum(one.entries for one in parts),
            bytes=sum(one.bytes for one in parts),
            # A runtime counts all that it was given, and so what was said before.
            last_usage_tokens=next(
                (one.last_usage_tokens for one in reversed(parts) if one.last_usage_tokens), None
            ),
        )
        written = tuple(
            (run_id, part.entries) for run_id, part in zip(runs, parts, strict=True) if part.entries
        )
        return Parent(own.session_id, own.run_id, extent, written=written)

    async def _runs_before(self, own: Run) -> list[UUID]:
        """The runs of the requester's session up to this one, the earliest first."""
        if own.continues is None or own.child_session_key is None:
            return [own.run_id]
        runs = await self._work.registry.runs_of_session(own.child_session_key, limit=RUNS_MAX)
        upto = own.created_position
        return [one.run_id for one in reversed(runs) if one.created_position <= upto]

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
    """Implements `StepMaker`. The entries become the first of the child's own transcript, and lie
    in a file for its runtime."""

    name: StepName = "context_fork"
    limit_seconds = LIMIT_SECONDS

    def __init__(self, work: UnitOfWork, transcripts: Transcripts) -> None:
        self._work = work
        self._transcripts = transcripts
        self._parents = ParentTranscripts(work, transcripts)

    async def place(self, run: Run, _: Plan) -> StepPlace | None:
        """The file, when the child is to begin with something. What was asked for and cannot be is
        refused before anything is made."""
        request = await read_context_request(self._work, run)
        if request.mode == "isolated":
            return None
        if not run.is_of_same_agent and not run.takes_transcript_over:
            if request.is_explicit:
                raise StepRefused(other_agent_refusal())
            return None
        if request.is_explicit and not await self._parents.is_there(run):
            raise StepRefused(no_transcript_refusal())
        assert run.agent_id is not None
        return StepPlace(*self._transcripts.fork_snapshot_place(run.session_id, run.agent_id))

    async def make(self, run: Run, _: StepState, *, is_resumed: bool) -> StepResult:
        """Write the rows and the file; with too much, or nothing, the child starts without."""
        try:
            async with asyncio.timeout(self.limit_seconds):
                return await self._fork_result(run, is_resumed=is_resumed)
        except (OSError, TimeoutError):
            raise StepRefused(fork_failed_refusal()) from None
        except NotATranscript:
            raise StepRefused(unreadable_transcript_refusal()) from None

    async def undo(self, run: Run, _: StepState) -> UndoOutcome:
        """Remove the rows and the file."""
        assert run.agent_id is not None
        had_rows = await self._transcripts.drop_fork(run.run_id)
        try:
            had_file = await self._transcripts.drop_fork_snapshot(run.session_id, run.agent_id)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise UndoFailed(f"the forked transcript cannot be removed: {reason}") from None
        return "undone" if had_rows or had_file else "nothing_there"

    async def _fork_result(self, run: Run, *, is_resumed: bool) -> StepResult:
        parent = await self._parents.of(run)
        if parent is None and run.options.context is not None:
            raise StepRefused(no_transcript_refusal())
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
        """In place of what an attempt before has left."""
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
        # Whose conversation it is has another key than whoever asks for it.
        del body["parentSessionKey"]
        body["respawnedFrom"] = str(parent.run_id)
    return TranscriptEntry(SESSION_KIND, body)

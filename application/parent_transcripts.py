"""What a requester had said by the moment at which it asked for a child."""

import asyncio
from dataclasses import dataclass
from typing import cast
from uuid import UUID

from application.log.unit_of_work import UnitOfWork
from application.ports.runtimes import EntryKind, TranscriptEntry
from application.ports.transcripts import Transcripts
from domain.context.fork import ParentExtent
from domain.delivery.provided_transcript import ProvidedEntry, entries_of_text, last_usage_tokens
from domain.run.state import Run
from domain.session.state import ProvidedTranscript
from domain.values.record import ContentRef

RUNS_MAX = 10_000
"""A conversation of more runs than that has more tokens than a child can begin with."""


@dataclass(frozen=True, slots=True)
class Parent:
    """A requester that said something. `provided` are its entries when it lives elsewhere, else
    they stand in the rows of its runs: of each so many, the earliest first. `run_id` is the last
    of them."""

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
        if run.requester.run_id is not None:
            return True
        known = await self._provided(run)
        return known is not None and await self._is_kept(known[1].content)

    async def of(self, run: Run) -> Parent | None:
        """The requester of this run as it was then; None when nothing is known of what it said.
        Raises `NotATranscript` when what is kept of it cannot be read."""
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

    async def _spawned_here(self, run: Run, requester_run_id: UUID) -> Parent:
        own = await self._work.run(requester_run_id)
        runs = await self._said_before(own)
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

    async def _said_before(self, own: Run) -> list[UUID]:
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

    async def _is_kept(self, content: ContentRef) -> bool:
        return content.id in await self._work.contents.previews((content,))

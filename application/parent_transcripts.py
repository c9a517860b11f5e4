"""What a requester had said by the moment at which it asked for a child."""

import asyncio
from dataclasses import dataclass
from typing import cast
from uuid import UUID

from application.ports.runtimes import EntryKind, TranscriptEntry
from application.ports.transcripts import Transcripts
from application.work import Work
from domain.content import ContentRef
from domain.context_fork import ParentExtent
from domain.provided_transcript import ProvidedEntry, entries_of_text, last_usage_tokens
from domain.run.state import Run
from domain.session.state import ProvidedTranscript


@dataclass(frozen=True, slots=True)
class Parent:
    """A requester that said something. `provided` are its entries when it lives elsewhere, else
    they stand in the rows of its run."""

    session_id: UUID
    run_id: UUID | None
    extent: ParentExtent
    provided: tuple[ProvidedEntry, ...] = ()


class ParentTranscripts:
    """Reads them from the record, so that a repeat finds the same."""

    def __init__(self, work: Work, transcripts: Transcripts) -> None:
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
        rows = await self._transcripts.read(parent.run_id, after=0, limit=parent.extent.entries)
        return tuple(TranscriptEntry(cast(EntryKind, one.kind), one.body) for one in rows)

    async def _spawned_here(self, run: Run, requester_run_id: UUID) -> Parent:
        own = await self._work.run(requester_run_id)
        written = await self._transcripts.extent(own.run_id, until=run.created_at)
        extent = ParentExtent(
            entries=written.entries,
            bytes=written.bytes,
            last_usage_tokens=written.last_usage_tokens,
        )
        return Parent(own.session_id, own.run_id, extent)

    async def _provided(self, run: Run) -> tuple[UUID, ProvidedTranscript] | None:
        session = await self._work.registry.session(
            run.requester.session_key, at=run.created_position
        )
        if session is None or session.transcript is None:
            return None
        return session.session_id, session.transcript

    async def _is_kept(self, content: ContentRef) -> bool:
        return content.id in await self._work.contents.previews((content,))

"""Intake of transcripts from sessions that live elsewhere, so that a child can fork them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from application.log.answers import KeptTranscript
from application.log.envelope import Actor
from application.log.event_log import Reservation, StoredAnswer
from application.log.unit_of_work import UnitOfWork, with_fresh_reads
from application.session.register import NamedSession, submit_to_session
from domain.context.fork import ParentExtent
from domain.delivery.provided_transcript import (
    ProvidedEntry,
    last_usage_tokens,
    line_of,
    text_of_entries,
)
from domain.session.decide import ProvideTranscript, decide
from domain.session.events import SessionEvent
from domain.session.state import Session
from domain.values.refusals import Rejected

ENTRY_BYTES_MAX = 1_048_576
TRANSCRIPT_BYTES_MAX = 17_179_869_184
"""Limit for all transcripts stored for a session, including earlier ones. Concurrent uploads may
exceed it."""


_KIND = "transcript"


class EntryTooLargeError(ValueError):
    """An entry exceeds the size limit. `index` counts from 0."""

    def __init__(self, index: int) -> None:
        super().__init__(f"an entry may have at most {ENTRY_BYTES_MAX} bytes")
        self.index = index


class TranscriptTooLarge(Rejected):
    """The stored transcripts of the session have reached the limit."""

    def __init__(self, display_key: str, stored_bytes: int) -> None:
        super().__init__(
            f"session {display_key} has {stored_bytes} bytes of uploaded transcripts, earlier"
            f" ones included; the limit is {TRANSCRIPT_BYTES_MAX}: use another session, or"
            " spawn without a new upload"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedTranscript:
    """A transcript that a caller submits for a session.

    Attributes:
        session_key: Canonical key.
        total_tokens: Number of tokens; None if the caller did not give it.
    """

    session_key: str
    display_key: str
    entries: tuple[ProvidedEntry, ...]
    total_tokens: int | None


@dataclass(frozen=True, slots=True)
class TranscriptResponse:
    """The answer to the caller, and the position at which it is true."""

    answer: StoredAnswer
    position: int


class TranscriptIntake:
    """Store of submitted transcripts, as texts of their sessions. Submitting the same one again is
    a no-op."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work

    async def provide(
        self, transcript: SubmittedTranscript, actor: Actor, reservation: Reservation | None
    ) -> TranscriptResponse:
        """Store the transcript in place of the session's earlier one.

        Raises:
            EntryTooLargeError: If an entry exceeds the size limit.
            TranscriptTooLarge: If the session's stored transcripts exceed the limit.
            TranscriptStoredHere: If the session's transcript is recorded here.
            SessionIsClosed: If the session is closed.
            ContentsErased: If the session's texts were erased.
            AlreadyReserved, LogUnavailable: From the log.
        """
        text = await asyncio.to_thread(_text_of, transcript.entries)
        return await with_fresh_reads(
            lambda _: self._try_provide(transcript, text, actor, reservation),
            "the session changes too fast; retry in a moment",
        )

    async def _try_provide(
        self,
        transcript: SubmittedTranscript,
        text: str,
        actor: Actor,
        reservation: Reservation | None,
    ) -> TranscriptResponse:
        work = self._work
        known = await work.registry.session(transcript.session_key)
        texts = await work.session_texts(known)
        content = await asyncio.to_thread(texts.text_store.store, _KIND, text)
        before = await work.contents.stored_bytes(texts.session_id, _KIND) if known else 0
        extent = ParentExtent(
            entries=len(transcript.entries),
            bytes=content.bytes,
            total_tokens=transcript.total_tokens,
            last_usage_tokens=last_usage_tokens(transcript.entries),
        )
        command = ProvideTranscript(
            entries=extent.entries, tokens=transcript.total_tokens, content=content, by=actor.name
        )
        kept = KeptTranscript.from_source(
            extent, session_key=transcript.session_key, session_id=texts.session_id
        )
        answer = StoredAnswer.of("transcript", kept)

        def decide_transcript(session: Session) -> Sequence[SessionEvent]:
            events = decide(session, command)
            if events and before + content.bytes > TRANSCRIPT_BYTES_MAX:
                raise TranscriptTooLarge(transcript.display_key, before)
            return events

        appended = await submit_to_session(
            work,
            NamedSession(transcript.session_key, transcript.display_key, known, texts),
            decide_transcript,
            actor,
            reservation=reservation,
            answer=answer,
        )
        return TranscriptResponse(answer, appended.position)


def _text_of(entries: tuple[ProvidedEntry, ...]) -> str:
    lines = []
    for index, entry in enumerate(entries):
        line = line_of(entry)
        if len(line) > ENTRY_BYTES_MAX or len(line.encode()) > ENTRY_BYTES_MAX:
            raise EntryTooLargeError(index)
        lines.append(line)
    return text_of_entries(lines)

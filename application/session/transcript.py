"""The transcript of a session that lives elsewhere, told so that a child can begin with it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from application.log.envelope import Actor, Provenance
from application.log.event_log import (
    Change,
    Content,
    ContentKey,
    Decision,
    LogUnavailable,
    Reservation,
    StoredAnswer,
    Submission,
    World,
)
from application.log.session_texts import has_texts
from application.log.texts import TextStore
from application.log.unit_of_work import ContentsErased, UnitOfWork
from application.ports.configurations import PinnedConfiguration
from application.session.shared_context import register_session
from domain.context.fork import ParentExtent
from domain.delivery.provided_transcript import (
    ProvidedEntry,
    last_usage_tokens,
    line_of,
    text_of_entries,
)
from domain.session.decide import ProvideTranscript, decide
from domain.session.state import Session, evolve
from domain.values.record import Stamp, session_stream
from domain.values.refusals import ConfigurationMoved, ReadAgain, Rejected

ENTRY_BYTES_MAX = 1_048_576
TRANSCRIPT_BYTES_MAX = 17_179_869_184


"""So much is kept of what was told of one session, all that was told before included; those who
tell at once may pass it by what they tell."""


ATTEMPTS_MAX = 5
_KIND = "transcript"


class EntryTooLarge(ValueError):
    """An entry is larger than one may be; `index` counts from 0."""

    def __init__(self, index: int) -> None:
        super().__init__(f"an entry may have {ENTRY_BYTES_MAX} bytes at most")
        self.index = index


class TranscriptTooLarge(Rejected):
    """All that was told of the session is kept, and no more of it is."""

    def __init__(self, display_key: str, kept_bytes: int) -> None:
        super().__init__(
            f"{kept_bytes} bytes were told of session {display_key} so far, and "
            f"{TRANSCRIPT_BYTES_MAX}"
            " are kept at most, for the past is kept: go on with another session, or spawn without"
            " telling more"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedTranscript:
    """What somebody says was said in a session. `session_key` is canonical; `total_tokens` is how
    many tokens it is, None when that was not said."""

    session_key: str
    display_key: str
    entries: tuple[ProvidedEntry, ...]
    total_tokens: int | None


@dataclass(frozen=True, slots=True)
class TranscriptResponse:
    """How the caller is answered, and the position at which that is so."""

    answer: StoredAnswer
    position: int


@dataclass(frozen=True, slots=True)
class _TranscriptAttempt:
    """What one attempt would record; `is_new_key` when nothing of the session was kept before.
    `bytes_before` are those that were told of it so far."""

    session_id: UUID
    key: bytes
    is_new_key: bool
    command: ProvideTranscript
    contents: tuple[Content, ...]
    answer: StoredAnswer
    bytes_before: int


class TranscriptIntake:
    """Keeps what it is told as a text of the session; the same again changes nothing."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work

    async def provide(
        self, told: SubmittedTranscript, actor: Actor, reservation: Reservation | None
    ) -> TranscriptResponse:
        """Keep it in place of what was told before.

        Raises `EntryTooLarge`, `TranscriptStoredHere`, `SessionIsClosed`, `ContentsErased`,
        `TranscriptTooLarge`, and what the log raises: `AlreadyReserved`, `LogUnavailable`.
        """
        text = await asyncio.to_thread(_text_of, told.entries)
        for _ in range(ATTEMPTS_MAX):
            try:
                return await self._try_provide(told, text, actor, reservation)
            except ReadAgain:
                continue
        raise LogUnavailable("the session changes too fast; ask again in a moment")

    async def _try_provide(
        self, told: SubmittedTranscript, text: str, actor: Actor, reservation: Reservation | None
    ) -> TranscriptResponse:
        pinned = self._work.configurations.current()
        known = await self._work.registry.session(told.session_key)
        kept = await self._store_texts(told, text, known, actor)
        try:
            appended = await self._work.log.submit(
                Submission(
                    command_id=self._work.identities.event_id(),
                    streams=(session_stream(told.session_key),),
                    decide=self._decision(told, kept, pinned, actor),
                    provenance=Provenance(
                        actor=actor,
                        correlation=known.root_session_key if known else told.session_key,
                        config_revision=pinned.revision,
                    ),
                    reservation=reservation,
                )
            )
        except ConfigurationMoved:
            raise LogUnavailable("the configuration changed meanwhile; ask again") from None
        return TranscriptResponse(appended.result, appended.position)

    async def _store_texts(
        self, told: SubmittedTranscript, text: str, known: Session | None, actor: Actor
    ) -> _TranscriptAttempt:
        ids = self._work.identities
        key = await self._work.contents.key(known.session_id) if known else None
        if key is None and known is not None and has_texts(known):
            raise ContentsErased(f"the texts of session {known.display_key} were erased")
        session_id = known.session_id if known else ids.run_id()
        new_key = key or ids.content_key()
        keeper = TextStore(session_id, new_key, ids.event_id)
        content = await asyncio.to_thread(keeper.store, _KIND, text)
        before = await self._work.contents.kept_bytes(session_id, _KIND) if known else 0
        extent = ParentExtent(
            entries=len(told.entries),
            bytes=content.bytes,
            total_tokens=told.total_tokens,
            last_usage_tokens=last_usage_tokens(told.entries),
        )
        command = ProvideTranscript(
            entries=extent.entries, tokens=told.total_tokens, content=content, by=actor.name
        )
        answer = {
            "sessionKey": told.session_key,
            "sessionId": str(session_id),
            "entries": extent.entries,
            "bytes": extent.bytes,
            "tokens": extent.tokens,
        }
        return _TranscriptAttempt(
            session_id,
            new_key,
            key is None,
            command,
            keeper.kept,
            StoredAnswer("transcript", answer),
            before,
        )

    def _decision(
        self,
        told: SubmittedTranscript,
        kept: _TranscriptAttempt,
        pinned: PinnedConfiguration,
        actor: Actor,
    ) -> Callable[[World], Decision[StoredAnswer]]:
        stream = session_stream(told.session_key)

        def decided(world: World) -> Decision[StoredAnswer]:
            session = world.sessions.get(told.session_key)
            if session is not None and session.session_id != kept.session_id:
                raise ReadAgain("the session was seen for the first time meanwhile")
            if kept.is_new_key and has_texts(session):
                raise ReadAgain("the first text of the session was kept meanwhile")
            changes: list[Change] = []
            if session is None:
                if world.config_version > pinned.revision:
                    raise ConfigurationMoved(world.config_version)
                observed = register_session(
                    kept.session_id, told.session_key, told.display_key, pinned, actor, world
                )
                changes.append((stream, observed))
                session = evolve(None, observed, Stamp(0, 1, world.now))
            told_now = decide(session, kept.command)
            if told_now and kept.bytes_before + kept.command.content.bytes > TRANSCRIPT_BYTES_MAX:
                raise TranscriptTooLarge(told.display_key, kept.bytes_before)
            changes += [(stream, event) for event in told_now]
            return Decision(
                kept.answer,
                changes,
                kept.contents if told_now else (),
                (ContentKey(kept.session_id, kept.key),) if told_now and kept.is_new_key else (),
                answer=kept.answer,
            )

        return decided


def _text_of(entries: tuple[ProvidedEntry, ...]) -> str:
    lines = []
    for index, entry in enumerate(entries):
        line = line_of(entry)
        if len(line) > ENTRY_BYTES_MAX or len(line.encode()) > ENTRY_BYTES_MAX:
            raise EntryTooLarge(index)
        lines.append(line)
    return text_of_entries(lines)

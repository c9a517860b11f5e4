"""Patches of the context that a session shares with its family."""

from collections.abc import Mapping
from dataclasses import dataclass

from application.log.envelope import Actor
from application.log.texts import SessionTexts
from application.log.unit_of_work import UnitOfWork, with_fresh_reads
from application.session.register import NamedSession, submit_to_session
from domain.session.decide import ChangeSharedContext, ContextMoved, decide
from domain.session.shared_context import effective_shared_keys, limit_refusal
from domain.session.state import Session
from domain.values.json_text import compact_json, merge_patch, read_json
from domain.values.refusals import ReadAgain, Refusal, Rejected
from domain.values.shared_values import SharedChange

ATTEMPTS_MAX = 50
"""Enough for many concurrent patches of any version, of which only one succeeds at a time."""


class SharedContextTooLarge(Rejected):
    """The patch would exceed the limits of the shared context."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPatch:
    """A JSON merge patch of a shared context. A value of None removes the key.

    Attributes:
        session_key: Canonical key.
        expected: Version that the patch was made for, 0 if nothing was shared; None for any
            version.
    """

    session_key: str
    display_key: str
    values: Mapping[str, object]
    expected: int | None


@dataclass(frozen=True, slots=True)
class PatchResult:
    """The session after a patch, and the position of that state."""

    session: Session | None
    position: int


class ContextPatcher:
    def __init__(self, work: UnitOfWork) -> None:
        self._work = work

    async def patch(self, request: ContextPatch, actor: Actor) -> PatchResult:
        """Record the changes of a patch. No-op if it changes nothing.

        Raises:
            ContextMoved: If the context is at another version than expected.
            SharedContextTooLarge: If it would exceed the limits.
            SessionIsClosed: If the session is closed.
            ContentsErased: If the session's texts were erased.
            LogUnavailableError: If the log cannot be reached.
        """
        # A patch for any version is applied again to the newest version.
        moved = (ContextMoved,) if request.expected is None else ()
        return await with_fresh_reads(
            lambda _: self._try_patch(request, actor),
            "the session changes too fast; retry in a moment",
            conflicts=(ReadAgain, *moved),
            attempts_max=ATTEMPTS_MAX,
        )

    async def _try_patch(self, request: ContextPatch, actor: Actor) -> PatchResult:
        work = self._work
        known = await work.registry.session(request.session_key)
        version = (known.shared_position or 0) if known is not None else 0
        if request.expected is not None and request.expected != version:
            raise ContextMoved(version)
        texts = await work.session_texts(known)
        command = ChangeSharedContext(
            await self._changes(request, known, texts),
            cause="patch",
            by=actor.name,
            expected=version,
        )
        appended = await submit_to_session(
            work,
            NamedSession(request.session_key, request.display_key, known, texts),
            lambda session: decide(session, command),
            actor,
        )
        return PatchResult(appended.sessions.get(request.session_key), appended.position)

    async def _changes(
        self, request: ContextPatch, known: Session | None, texts: SessionTexts
    ) -> tuple[SharedChange, ...]:
        """Return the keys that the patch changes."""
        now = {
            shared_key.key: shared_key.value
            for shared_key in effective_shared_keys(known)
            if shared_key.value is not None
        }
        touched = [now[key] for key in request.values if key in now]
        found = await self._work.contents.texts(touched)
        changes: list[SharedChange] = []
        for key, value in request.values.items():
            before = found.get(now[key].id) if key in now else None
            if value is None:
                changes += [SharedChange(key=key)] if key in now else []
                continue
            text = compact_json(merge_patch(read_json(before) if before else None, value))
            if text != before:
                changes.append(SharedChange(key=key, value=texts.text_store.store("shared", text)))
        _require_within_limits(known, changes)
        return tuple(changes)


def _require_within_limits(known: Session | None, changes: list[SharedChange]) -> None:
    gone = {change.key for change in changes if change.value is None}
    left = tuple(
        shared_key for shared_key in effective_shared_keys(known) if shared_key.key not in gone
    )
    added = [(change.key, change.value.bytes) for change in changes if change.value is not None]
    refusal = limit_refusal(left, added, None) if added else None
    if refusal is not None:
        raise SharedContextTooLarge(refusal)

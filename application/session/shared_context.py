"""The owner of a session writes into what the session shares with its family."""

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
"""Of many patches for any version that come at once only one gets in at a time."""


class SharedContextTooLarge(Rejected):
    """With this patch the session would share more than it may."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPatch:
    """A JSON merge patch of a shared context; None takes a key away.

    `session_key` is canonical. `expected` is the version that the patch was made for, 0 when
    nothing was shared yet; None when it is for any.
    """

    session_key: str
    display_key: str
    values: Mapping[str, object]
    expected: int | None


@dataclass(frozen=True, slots=True)
class PatchResult:
    """The session after the patch, and the position at which it is so."""

    session: Session | None
    position: int


class ContextPatcher:
    """Patches shared contexts."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work

    async def patch(self, request: ContextPatch, actor: Actor) -> PatchResult:
        """Record what the patch changes; nothing when it changes nothing.

        Raises `ContextMoved`, `SharedContextTooLarge`, `SessionIsClosed`, `ContentsErased`, and
        what the log raises.
        """
        # A patch for any version is made again for the newest.
        moved = (ContextMoved,) if request.expected is None else ()
        return await with_fresh_reads(
            lambda _: self._try_patch(request, actor),
            "the session changes too fast; ask again in a moment",
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
        """What the patch makes of what is shared now, without what stays as it is."""
        now = {one.key: one.value for one in effective_shared_keys(known) if one.value is not None}
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
        _must_fit(known, changes)
        return tuple(changes)


def _must_fit(known: Session | None, changes: list[SharedChange]) -> None:
    gone = {one.key for one in changes if one.value is None}
    left = tuple(one for one in effective_shared_keys(known) if one.key not in gone)
    added = [(one.key, one.value.bytes) for one in changes if one.value is not None]
    refusal = limit_refusal(left, added, None) if added else None
    if refusal is not None:
        raise SharedContextTooLarge(refusal)

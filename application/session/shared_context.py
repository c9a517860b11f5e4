"""The owner of a session writes into what the session shares with its family."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from application.log.envelope import Actor, Provenance
from application.log.event_log import Change, Decision, LogUnavailable, Submission, World
from application.log.session_texts import SessionTexts, open_session_texts
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import PinnedConfiguration
from domain.session.decide import ChangeSharedContext, ContextMoved, decide
from domain.session.events import SessionObserved
from domain.session.shared_context import effective_shared_keys, limit_refusal
from domain.session.state import Session, evolve
from domain.spawn.decide import SessionRegistration, find_depth, observe_session
from domain.values.json_text import compact_json, read_json
from domain.values.record import Stamp, session_stream
from domain.values.refusals import ConfigurationMoved, ReadAgain, Refusal, Rejected
from domain.values.session_key import agent_id_of
from domain.values.shared_values import SharedChange

# A session that is seen for the first time because something is told of it.


def register_session(
    session_id: UUID,
    session_key: str,
    display_key: str,
    pinned: PinnedConfiguration,
    actor: Actor,
    world: World,
) -> SessionObserved:
    """The session as its key and the configuration tell of it."""
    agent_id = agent_id_of(session_key)
    sighting = SessionRegistration(
        session_id=session_id,
        session_key=session_key,
        display_key=display_key,
        agent_id=agent_id,
        asserted_by=actor.name,
        sandboxed=pinned.configuration.is_sandboxed(agent_id, session_key),
    )
    return observe_session(
        sighting,
        depth=find_depth(session_key, world.sessions).depth,
        max_spawn_depth=pinned.configuration.subagent_defaults.max_spawn_depth,
    )


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

    async def patch(self, asked: ContextPatch, actor: Actor) -> PatchResult:
        """Record what the patch changes; nothing when it changes nothing.

        Raises `ContextMoved`, `SharedContextTooLarge`, `SessionIsClosed`, `ContentsErased`, and
        what the log raises.
        """
        for _ in range(ATTEMPTS_MAX):
            try:
                return await self._try_patch(asked, actor)
            except ReadAgain:
                continue
            except ContextMoved:
                if asked.expected is not None:
                    raise
            except ConfigurationMoved:
                raise LogUnavailable("the configuration changed meanwhile; ask again") from None
        raise LogUnavailable("the session changes too fast; ask again in a moment")

    async def _try_patch(self, asked: ContextPatch, actor: Actor) -> PatchResult:
        work = self._work
        known = await work.registry.session(asked.session_key)
        version = (known.shared_position or 0) if known is not None else 0
        if asked.expected is not None and asked.expected != version:
            raise ContextMoved(version)
        session_id = known.session_id if known is not None else work.identities.run_id()
        texts = await open_session_texts(work, known, session_id)
        command = ChangeSharedContext(
            await self._changes(asked, known, texts), cause="patch", by=actor.name, expected=version
        )
        pinned = work.configurations.current()
        appended = await work.log.submit(
            Submission(
                command_id=work.identities.event_id(),
                streams=(session_stream(asked.session_key),),
                decide=_decision(asked, command, texts, pinned, actor),
                provenance=Provenance(
                    actor=actor,
                    correlation=known.root_session_key if known else asked.session_key,
                    config_revision=pinned.revision,
                ),
            )
        )
        return PatchResult(appended.sessions.get(asked.session_key), appended.position)

    async def _changes(
        self, asked: ContextPatch, known: Session | None, texts: SessionTexts
    ) -> tuple[SharedChange, ...]:
        """What the patch makes of what is shared now, without what stays as it is."""
        now = {one.key: one.value for one in effective_shared_keys(known) if one.value is not None}
        touched = [now[key] for key in asked.values if key in now]
        found = await self._work.contents.texts(touched)
        changes: list[SharedChange] = []
        for key, value in asked.values.items():
            before = found.get(now[key].id) if key in now else None
            if value is None:
                changes += [SharedChange(key=key)] if key in now else []
                continue
            text = compact_json(_merge_patch(read_json(before) if before else None, value))
            if text != before:
                changes.append(SharedChange(key=key, value=texts.keeper.store("shared", text)))
        _must_fit(known, changes)
        return tuple(changes)


def _must_fit(known: Session | None, changes: list[SharedChange]) -> None:
    gone = {one.key for one in changes if one.value is None}
    left = tuple(one for one in effective_shared_keys(known) if one.key not in gone)
    added = [(one.key, one.value.bytes) for one in changes if one.value is not None]
    refusal = limit_refusal(left, added, None) if added else None
    if refusal is not None:
        raise SharedContextTooLarge(refusal)


def _merge_patch(before: object, patch: object) -> object:
    """RFC 7396: objects are merged, and null takes a member away; anything else is replaced."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge_patch(merged.get(name), value)
    return merged


def _decision(
    asked: ContextPatch,
    command: ChangeSharedContext,
    texts: SessionTexts,
    pinned: PinnedConfiguration,
    actor: Actor,
) -> Callable[[World], Decision[None]]:
    stream = session_stream(asked.session_key)

    def decided(world: World) -> Decision[None]:
        session = world.sessions.get(asked.session_key)
        texts.must_fit(session)
        changes: list[Change] = []
        if session is None:
            if not command.changes:
                return Decision(None)
            if world.config_version > pinned.revision:
                raise ConfigurationMoved(world.config_version)
            seen = register_session(
                texts.session_id, asked.session_key, asked.display_key, pinned, actor, world
            )
            changes.append((stream, seen))
            session = evolve(None, seen, Stamp(0, 1, world.now))
        events = decide(session, command)
        changes += [(stream, event) for event in events]
        return Decision(None, changes, texts.kept if events else (), texts.keys if events else ())

    return decided

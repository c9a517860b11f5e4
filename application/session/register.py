"""Records events of a session, and registers the session in the same append if it is not on
record."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from application.log.envelope import Actor, Provenance
from application.log.event_log import (
    Appended,
    Decision,
    DecisionContext,
    LogUnavailableError,
    Reservation,
    StoredAnswer,
)
from application.log.texts import SessionTexts
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import PinnedConfiguration
from domain.session.events import SessionEvent, SessionObserved
from domain.session.state import Session
from domain.spawn.decide import SessionRegistration, find_depth, observe_session
from domain.states import States
from domain.values.record import Stamp, session_stream
from domain.values.refusals import ConfigurationMoved
from domain.values.session_key import agent_id_of


@dataclass(frozen=True, slots=True)
class NamedSession:
    """A session named by a request.

    Attributes:
        session_key: Canonical key.
        known: The session as read; None if it is not on record.
    """

    session_key: str
    display_key: str
    known: Session | None
    texts: SessionTexts


async def submit_to_session(
    work: UnitOfWork,
    named: NamedSession,
    decide: Callable[[Session], Sequence[SessionEvent]],
    actor: Actor,
    *,
    reservation: Reservation | None = None,
    answer: StoredAnswer | None = None,
) -> Appended[None]:
    """Record the session events that `decide` returns, and their texts. No-op if it returns none.

    Raises:
        ReadAgain: The session has changed since it was read.
        Rejected: As raised by `decide`.
        LogUnavailableError: If the log cannot be reached, or the configuration changed.
    """
    pinned = work.configurations.current()
    stream, texts = session_stream(named.session_key), named.texts

    def decided(world: DecisionContext) -> Decision[None]:
        session = world.sessions.get(named.session_key)
        texts.require_fit(session)
        before: tuple[SessionEvent, ...] = ()
        if session is None:
            registered = _registered(named, pinned, actor, world)
            before = (registered,)
            _, after = States().take(stream, registered, Stamp(0, 1, world.now))
            session = cast("Session", after)
        events = decide(session)
        if not events:
            return Decision(None, answer=answer)
        if before:
            pinned.require_current(world.config_version)
        changes = [(stream, event) for event in (*before, *events)]
        return Decision(None, changes, texts.contents, texts.keys, answer=answer)

    known = named.known
    provenance = Provenance(
        actor=actor,
        correlation=known.root_session_key if known else named.session_key,
        config_revision=pinned.revision,
    )
    try:
        return await work.submit((stream,), decided, provenance, reservation=reservation)
    except ConfigurationMoved:
        raise LogUnavailableError("the configuration changed meanwhile; retry") from None


def _registered(
    named: NamedSession, pinned: PinnedConfiguration, actor: Actor, world: DecisionContext
) -> SessionObserved:
    """Return the registration of the session, according to its key and the configuration."""
    agent_id = agent_id_of(named.session_key)
    registration = SessionRegistration(
        session_id=named.texts.session_id,
        session_key=named.session_key,
        display_key=named.display_key,
        agent_id=agent_id,
        asserted_by=actor.name,
        sandboxed=pinned.configuration.is_sandboxed(agent_id, named.session_key),
    )
    return observe_session(
        registration,
        depth=find_depth(named.session_key, world.sessions).depth,
        max_spawn_depth=pinned.configuration.subagent_defaults.max_spawn_depth,
    )

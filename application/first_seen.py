"""A session that is seen for the first time because something is told of it."""

from uuid import UUID

from application.log.envelope import Actor
from application.log.event_log import World
from application.ports.configurations import PinnedConfiguration
from domain.session.events import SessionObserved
from domain.spawn.decide import SessionRegistration, find_depth, observe_session
from domain.values.session_key import agent_id_of


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

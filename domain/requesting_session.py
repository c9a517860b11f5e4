"""The session that asks for a child: as it is on record, or as it is seen for the first time."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from domain.run.facts import Plan, Requester
from domain.run.state import Run
from domain.session.events import Assertion, SessionObserved
from domain.session.role import capabilities_at
from domain.session.state import Session
from domain.session_depth import FoundDepth, KnownDepth, depth_of
from domain.spawn.request import RequestSpawn, SpawnPolicy, StoreText, store_optional


def find_depth(key: str, sessions: Mapping[str, Session]) -> FoundDepth:
    """How deep a requester is. Every session on record has a depth, so that it is the recorded
    one, or what the key's shape says."""
    return depth_of(key, lambda one: _known_depth(sessions.get(one)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRegistration:
    """What whoever speaks of a session says of it, and its key. `assertions` name the facts that
    rest on that word alone."""

    session_id: UUID
    session_key: str
    display_key: str
    agent_id: str
    asserted_by: str
    sandboxed: bool
    assertions: tuple[Assertion, ...] = ()


def observe_session(
    sighting: SessionRegistration, *, depth: int, max_spawn_depth: int
) -> SessionObserved:
    """A session that nothing is known of but that; so deep is what the shape of its key says."""
    capabilities = capabilities_at(depth, max_spawn_depth)
    return SessionObserved(
        session_id=sighting.session_id,
        session_key=sighting.session_key,
        display_key=sighting.display_key,
        agent_id=sighting.agent_id,
        depth=depth,
        role=capabilities.role,
        control_scope=capabilities.control_scope,
        spawned_by=None,
        root_session_key=sighting.session_key,
        run_id=None,
        asserted_by=sighting.asserted_by,
        sandboxed=sighting.sandboxed,
        depth_from="shape",
        assertions=sighting.assertions,
    )


def observe_requester(command: RequestSpawn, policy: SpawnPolicy, depth: int) -> SessionObserved:
    """A requester that nothing is known of but what its request and its key say."""
    assertions: list[Assertion] = ["agentId"] if command.asserts_agent else []
    if command.options.requester_sandboxed:
        assertions.append("sandboxed")
    sighting = SessionRegistration(
        session_id=command.requester_session_id,
        session_key=command.requester_key,
        display_key=command.requester_display_key,
        agent_id=command.requester_agent_id,
        asserted_by=command.asserted_by,
        sandboxed=command.requester_in_sandbox or command.options.requester_sandboxed,
        assertions=tuple(assertions),
    )
    return observe_session(sighting, depth=depth, max_spawn_depth=policy.max_spawn_depth)


def _known_depth(session: Session | None) -> KnownDepth | None:
    return KnownDepth(session.depth, session.spawned_by) if session is not None else None


def requester_of(
    command: RequestSpawn,
    session: Session | SessionObserved,
    own: Run | None,
    keep: StoreText,
) -> Requester:
    """What the plan will inherit, as it is on record now."""
    # What is on record, what is configured now, what the request says: each only tightens.
    sandboxed = bool(session.sandboxed) or command.requester_in_sandbox
    plan = own.plan if own is not None else None
    return Requester(
        session_key=session.session_key,
        display_key=command.requester_display_key,
        agent_id=command.requester_agent_id,
        depth=session.depth,
        root_session_key=session.root_session_key,
        run_id=session.run_id,
        spawned_by=session.spawned_by,
        origin=store_optional(keep, "origin", command.origin),
        sandboxed=sandboxed or command.options.requester_sandboxed,
        workspace_dir=session.workspace_dir or (plan.workspace_dir if plan else None),
        model=_model_of(plan),
        thinking=plan.thinking if plan else None,
    )


def _model_of(plan: Plan | None) -> str | None:
    if plan is None or plan.model is None:
        return None
    return f"{plan.model_provider}/{plan.model}" if plan.model_provider else plan.model

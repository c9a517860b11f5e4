"""Decide from the record whether a spawn is permitted, and which events are recorded."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from domain.event_types import AnyEvent
from domain.plan.tools import YIELD_TOOL, permits_tool
from domain.run.events import SpawnRefused, SpawnRequested
from domain.run.facts import AdmissionFacts, AttachmentsRequest, Requester
from domain.run.lifecycle import OVER
from domain.run.state import Run
from domain.session.decide import AdmitChild
from domain.session.decide import decide as decide_session
from domain.session.events import Assertion, ChildAdmitted, SessionEvent, SessionObserved
from domain.session.role import FoundDepth, KnownDepth, capabilities_at, depth_of
from domain.session.shared_context import (
    effective_shared_keys,
    limit_refusal,
    references_refusal,
)
from domain.session.state import Session
from domain.spawn import request
from domain.spawn.admission import ADMISSION, SpawnPolicy, admission_facts, admit
from domain.spawn.batch import speculative
from domain.spawn.request import (
    RequestSpawn,
    StoreText,
    store_optional,
)
from domain.values.record import run_stream, session_stream
from domain.values.refusals import AgentOnRecord, Permitted, ReadAgain, Refusal, SessionIsClosed
from domain.values.shared_values import SharedChange, SharedContextRequest

# The requesting session, as recorded or as first seen.


def find_depth(key: str, sessions: Mapping[str, Session]) -> FoundDepth:
    """Return the depth of a requester: the recorded one, else the depth that its key implies."""
    return depth_of(key, lambda parent: _known_depth(sessions.get(parent)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRegistration:
    """First sighting of a session: its key, and the facts stated by the caller.

    `assertions` names the facts that only the caller vouches for.
    """

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
    """Return the event that records a session seen for the first time.

    `depth` is the depth that its key implies.
    """
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
    """Return the event that records a requester seen for the first time."""
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
    """Return the requester as recorded now; the child's plan inherits from it.

    Args:
        command: The request.
        session: The requester's session.
        own: The requester's own run, if it has one here.
        keep: Stores the addresses.
    """
    # The record, the configuration and the request can each only tighten the sandbox.
    sandboxed = session.sandboxed or command.requester_in_sandbox
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
        model=plan.model_reference if plan else None,
        thinking=plan.thinking if plan else None,
        may_yield=permits_tool(plan, YIELD_TOOL) if plan else None,
    )


@dataclass(frozen=True, slots=True)
class SpawnDecision:
    """Changes to record, the facts compared, and the refusal if the request was refused."""

    changes: tuple[tuple[str, AnyEvent], ...]
    refusal: Refusal | None
    facts: AdmissionFacts


def request_spawns(
    sessions: Mapping[str, Session],
    runs: Mapping[UUID, Run],
    spawns: Sequence[tuple[RequestSpawn, StoreText]],
    policy: SpawnPolicy,
    waiting: Collection[Run] = (),
) -> SpawnDecision:
    """Decide on all spawns of one request: either all are permitted, or all are refused.

    Permitted spawns take their places in the same append. The commands differ only in run, texts
    and label, so each rule is checked once.

    Args:
        sessions: Sessions by key, with the requester's if it is on record.
        runs: The requester's own run and the runs above it, the named dependencies, and the runs
            that `linked_runs` returns for `waiting`.
        spawns: A command for each run, with the store for its texts.
        policy: The configured limits of the requester.
        waiting: All runs of the tree that depend on others and are not queued yet.

    Raises:
        SessionIsClosed: The requester's session is closed, or its own run is over or being stopped.
        AgentOnRecord: The session belongs to another agent than the request and its policy.
        ReadAgain: `runs` lacks a run, or the session has a newer run.
    """
    command, _ = spawns[0]
    known = sessions.get(command.requester_key)
    if known is not None and known.agent_id != command.requester_agent_id:
        raise AgentOnRecord(known.agent_id)
    found = find_depth(command.requester_key, sessions)
    observed = known or observe_requester(command, policy, found.depth)
    _require_open(known, runs)
    _require_newest_ancestors(command, known)
    family = effective_shared_keys(known)
    active = known.active_children if known else 0
    own = runs.get(observed.run_id) if observed.run_id is not None else None
    own_plan = own.plan if own is not None else None
    facts = admission_facts(command, policy, found, active, family, len(spawns), own_plan)
    verdict = admit(ADMISSION, facts, raw_agent_id=command.agent_id_argument or "")
    if isinstance(verdict, Permitted) and command.shared is not None:
        refusal = limit_refusal(family, command.shared.sizes, command.shared.scope)
        refusal = refusal or references_refusal(
            family, (reference.key for reference in command.shared.references)
        )
        verdict = refusal or verdict
    if isinstance(verdict, Permitted):
        verdict = request.dependencies_refusal(command, runs, waiting) or verdict
    stream = session_stream(command.requester_key)
    changes: list[tuple[str, AnyEvent]] = []
    if isinstance(observed, SessionObserved):
        changes.append((stream, observed))
    for spawn, keep in spawns:
        requester = requester_of(spawn, observed, own, keep)
        changes.append((run_stream(spawn.run_id), _requested_event(spawn, requester, facts, keep)))
    if isinstance(verdict, Refusal):
        changes += [
            (run_stream(spawn.run_id), _refused_event(verdict, keep)) for spawn, keep in spawns
        ]
        return SpawnDecision(tuple(changes), verdict, facts)
    changes += [(stream, event) for event in _admit_children(known, spawns, policy)]
    return SpawnDecision(tuple(changes), None, facts)


def _refused_event(refusal: Refusal, keep: StoreText) -> SpawnRefused:
    return SpawnRefused(
        rule=refusal.rule,
        status=refusal.status,
        step="admission",
        text=keep("refusal", refusal.text),
        inputs={"current": refusal.current, "limit": refusal.limit},
    )


def _admit_children(
    known: Session | None, spawns: Sequence[tuple[RequestSpawn, StoreText]], policy: SpawnPolicy
) -> Iterator[SessionEvent]:
    session = known
    for number, (command, _) in enumerate(spawns):
        if session is None:
            yield ChildAdmitted(
                run_id=command.run_id, active_children=number, max_children=policy.max_children
            )
            continue
        for event in decide_session(session, AdmitChild(command.run_id, policy.max_children)):
            session = speculative(session, event)
            yield event


def _require_open(session: Session | None, runs: Mapping[UUID, Run]) -> None:
    if session is None:
        return
    own = runs.get(session.run_id) if session.run_id is not None else None
    if own is None and session.run_id is not None:
        raise ReadAgain("the requester's session changed meanwhile; read it again and retry")
    if session.stage == "closed":
        raise SessionIsClosed(
            f"session {session.display_key} is closed and cannot spawn; spawn from the session"
            " that spawned it"
        )
    if own is not None and own.stage in OVER:
        raise SessionIsClosed(
            f"the run of session {session.display_key} is over, so it cannot spawn; spawn from"
            " the session that spawned it, or continue it with a message while it is open"
        )
    if own is not None and own.stop_requested_by is not None:
        # A stop cascades to the existing children; a new one would escape it.
        raise SessionIsClosed(f"session {session.display_key} is being stopped and cannot spawn")


def _require_newest_ancestors(command: RequestSpawn, session: Session | None) -> None:
    """Raise `ReadAgain` if the dependencies were checked against an older run of the session.

    The spawn could then wait for a run that waits for it.
    """
    newest = (session.run_id,) if session is not None and session.run_id is not None else ()
    if command.dependencies and command.ancestors[:1] != newest:
        raise ReadAgain("the requester's session changed meanwhile; read it again and retry")


def _requested_event(
    command: RequestSpawn,
    requester: Requester,
    facts: AdmissionFacts,
    keep: StoreText,
) -> SpawnRequested:
    argument = command.agent_id_argument
    return SpawnRequested(
        run_id=command.run_id,
        session_id=command.session_id,
        requester=requester,
        requested_agent_id=command.target_agent_id,
        agent_id_argument=(
            keep("agentId", argument)
            if argument is not None and command.target_agent_id is None
            else None
        ),
        label=command.label,
        task=keep("task", command.task),
        preamble=store_optional(keep, "preamble", command.preamble),
        model_argument=store_optional(keep, "model", command.model_argument),
        thinking_argument=store_optional(keep, "thinking", command.thinking_argument),
        workspace_argument=store_optional(keep, "workspace", command.workspace_argument),
        attachments=_attachments_request(command, keep),
        shared=_shared_context_request(command, keep),
        dependencies=command.dependencies,
        dependencies_argument=store_optional(keep, "dependencies", command.dependencies_argument),
        ancestors=command.ancestors,
        batch=command.batch,
        respawn=command.respawn,
        options=command.options,
        facts=facts,
        config_revision=command.config_revision,
        holder=command.holder,
    )


def _shared_context_request(command: RequestSpawn, keep: StoreText) -> SharedContextRequest | None:
    given = command.shared
    if given is None:
        return None
    return SharedContextRequest(
        keys=tuple(SharedChange(key=key, value=keep("shared", text)) for key, text in given.values),
        scope=given.scope,
        references=given.references,
    )


def _attachments_request(command: RequestSpawn, keep: StoreText) -> AttachmentsRequest | None:
    judged = command.attachments
    if judged is None:
        return None
    return AttachmentsRequest(
        count=judged.count,
        total_bytes=judged.total_bytes,
        mount_path_hint=judged.mount_path_hint,
        retain=judged.retain,
        manifest=store_optional(keep, "attachments", judged.manifest),
        refusal=store_optional(keep, "refusal", judged.refusal),
        refusal_status=judged.refusal_status,
    )

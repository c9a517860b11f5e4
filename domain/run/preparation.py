"""Decisions while a spawn is prepared."""

from domain.run.commands import (
    CreateSession,
    RefuseSpawn,
    ResolveScripts,
    ResumePreparation,
    SettleDependencies,
)
from domain.run.dedupe import dedupe_key
from domain.run.events import (
    AgentOverridden,
    PreparationResumed,
    RunEnded,
    RunEvent,
    RunQueued,
    ScriptsResolved,
    SessionCreated,
)
from domain.run.holding import must_hold
from domain.run.preparation_steps import must_be_taken
from domain.run.request_events import SpawnRefused
from domain.run.state import Run
from domain.run.waiting_events import DependencyMet, RunWaits
from domain.values.refusals import ReadAgain, WrongStage


def resume_preparation(run: Run, command: ResumePreparation) -> tuple[RunEvent, ...]:
    """Another holder goes on."""
    must_hold(run, command.lost_epoch)
    return (
        PreparationResumed(holder=command.holder, attempt=run.attempt + 1, reason=command.reason),
    )


def resolve_scripts(run: Run, command: ResolveScripts) -> tuple[RunEvent, ...]:
    """What the scripts did, and the override when another agent won."""
    must_hold(run, command.epoch)
    resolved = ScriptsResolved(receipts=command.receipts, candidates=command.candidates)
    if command.override_to is None or command.override_to == run.agent_id:
        return (resolved,)
    if run.agent_id is None:
        raise WrongStage("override the agent", "without an agent")
    return (
        resolved,
        AgentOverridden(
            from_agent_id=run.agent_id,
            to_agent_id=command.override_to,
            candidates=command.candidates,
        ),
    )


def create_session(run: Run, command: CreateSession) -> tuple[RunEvent, ...]:
    """The child exists; with nothing to wait for it is queued at once."""
    must_hold(run, command.epoch)
    if run.child_session_key is None or run.agent_id is None:
        raise WrongStage("create the session", "not prepared")
    must_be_taken(run, "create the session")
    return (
        SessionCreated(
            child_session_key=run.child_session_key,
            session_id=run.session_id,
            agent_id=run.agent_id,
            depth=command.depth,
            max_depth=command.max_depth,
            role=command.role,
            control_scope=command.control_scope,
            plan=command.plan,
            ingredients=command.ingredients,
            warnings=command.warnings,
            note=command.note,
            facts=command.facts,
            hooks=command.hooks,
            delivery_origin=run.delivery_origin,
            context_mode=run.context_mode,
            direct_delivery=command.direct_delivery,
            preamble=command.preamble,
        ),
        *_met_events(command),
        *_queue_if_met(run, command),
    )


def settle_dependencies(run: Run, command: SettleDependencies) -> tuple[RunEvent, ...]:
    """Nothing when nothing changed; the end of a run that waits for one that failed."""
    if run.stage != "session-created" or run.waits_for is None:
        return ()
    if command.failed is not None:
        if command.failed != command.culprit:
            raise ReadAgain("another run that it waits for failed; read it and ask again")
        return (RunEnded(outcome="error", reason="dependency_failed", error=command.error),)
    queued = () if command.waits_for else _queue_if_met(run, command)
    return (*_met_events(command), *queued)


def _met_events(command: CreateSession | SettleDependencies) -> tuple[RunEvent, ...]:
    return tuple(DependencyMet(run_id=one, outcome=outcome) for one, outcome in command.met)


def _queue_if_met(run: Run, command: CreateSession | SettleDependencies) -> tuple[RunEvent, ...]:
    if command.waits_for:
        return (RunWaits(run_ids=command.waits_for),)
    depth = command.depth if isinstance(command, CreateSession) else run.depth
    return (RunQueued(lane=command.lane, lane_depth=depth),)


def refuse_spawn(run: Run, command: RefuseSpawn) -> tuple[RunEvent, ...]:
    """The spawn is not to be."""
    if command.epoch is not None:
        must_hold(run, command.epoch)
    return (
        SpawnRefused(
            rule=command.rule,
            status=command.status,
            step=command.step,
            text=command.text,
            inputs=command.inputs,
            announcement=command.announcement,
            dedupe_key=dedupe_key(run) if command.announcement else None,
            facts=command.facts,
        ),
    )

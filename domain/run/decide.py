"""Decide which events a command to a run records. These rules may be tightened in any release."""

from typing import assert_never

from domain.run.commands import (
    AcknowledgeAnnouncement,
    AnnounceRun,
    ArchiveRun,
    BeginStep,
    ClaimRun,
    CreateSession,
    DropMessage,
    EffectCommand,
    EndRun,
    FailContinuation,
    QueueMessage,
    RefuseSpawn,
    ResolveScripts,
    ResumePreparation,
    RunCommand,
    ScheduleArchive,
    SettleDependencies,
    StartPreparation,
    StartRun,
    StopRun,
    TakeStep,
    YieldRun,
)
from domain.run.continuation import (
    drop_message,
    drop_messages,
    fail_continuation,
    queue_message,
    yield_run,
)
from domain.run.effects import decide_effect
from domain.run.events import (
    AgentOverridden,
    AnnouncementAcknowledged,
    ArchiveScheduled,
    DependencyMet,
    PreparationResumed,
    PreparationStarted,
    RunAnnounced,
    RunArchived,
    RunClaimed,
    RunEnded,
    RunEvent,
    RunQueued,
    RunStarted,
    RunWaits,
    ScriptsResolved,
    SessionCreated,
    SpawnRefused,
    StopRequested,
)
from domain.run.lifecycle import LIFECYCLE, OVER, PREPARING
from domain.run.preparation_steps import (
    begin_step,
    require_taken,
    take_step,
)
from domain.run.state import Run, require_holder
from domain.values import rules
from domain.values.refusals import (
    CannotDeliver,
    LostClaim,
    NotYet,
    ReadAgain,
    StopWanted,
    WrongStage,
)

NOT_CLAIMED = "not_claimed"
"""End reason of an external run that no executor claimed in time. It never had a holder."""


def dedupe_key(run: Run) -> str:
    """Return the key by which a receiver recognizes a repeated announcement of the same run."""
    return f"announce:v1:{run.child_session_key or run.session_id}:{run.run_id}"


# Decisions while a run waits in its lane and executes.


def claim_run(run: Run, command: ClaimRun) -> tuple[RunEvent, ...]:
    """Claim a queued run if its lane has room, or take it over from a claim that lost its holder.

    Raises:
        WrongStage: The run is not queued.
        LostClaim: Another claim than `lost_epoch` holds the run.
        NotYet: The lane is full.
    """
    if run.stage != "queued":
        raise WrongStage("claim the run", run.stage)
    if run.holder is not None and run.epoch != command.lost_epoch:
        raise LostClaim(run.epoch, command.lost_epoch or 0)
    takes_over = run.holder is not None
    if not takes_over and command.lane_running >= command.lane_width:
        raise NotYet(f"the lane is full ({command.lane_running}/{command.lane_width})")
    return (
        RunClaimed(
            holder=command.holder,
            attempt=run.attempt + 1 if takes_over else 1,
            lane_width=None if takes_over else command.lane_width,
            lane_running=None if takes_over else command.lane_running,
        ),
    )


def start_run(run: Run, command: StartRun) -> tuple[RunEvent, ...]:
    """Record the start. The runtime executes the child only after this is recorded.

    Raises:
        LostClaim: The command's epoch is not that of the current claim.
        StopWanted: The run was stopped or steered before it started.
        WrongStage: The run is over, or is not claimed.
    """
    require_holder(run, command.epoch)
    if run.holder is None:
        raise WrongStage("start the run", "not claimed")
    if run.stop_requested_by is not None:
        raise StopWanted(f"stopped by {run.stop_requested_by} before it started")
    if run.is_steered:
        raise StopWanted(f"steered by {run.steered_by} before it started")
    return (
        RunStarted(
            runtime=command.runtime,
            system_prompt=command.system_prompt,
            message=command.message,
            parts=command.parts,
            shared_context_position=command.shared_context_position,
            shared_context=command.shared_context,
        ),
    )


def stop_run(run: Run, command: StopRun) -> tuple[RunEvent, ...]:
    """Stop the run and drop its waiting messages.

    If the run is still being prepared, its spawn is refused. If it waits or is queued without a
    holder, it ends at once. Otherwise its holder is asked to end it. A paused run will not be
    continued. Repeating a stop only drops the messages queued since.
    """
    if run.is_paused:
        stop = StopRequested(
            by=command.by, by_requester=command.by_requester, reason=command.reason
        )
        return (stop, *drop_messages(run))
    if run.stage in OVER:
        return drop_messages(run)
    if run.stage in PREPARING:
        return (
            SpawnRefused(
                rule=rules.STOPPED.name,
                status="error",
                step=run.stage,
                text=command.text,
                announcement=command.announcement,
                dedupe_key=dedupe_key(run) if command.announcement else None,
                webhooks=command.webhooks,
            ),
        )
    if run.holder is None or run.stage == "session-created":
        # Before it is claimed from its lane there is no holder to ask.
        return (
            *drop_messages(run),
            RunEnded(
                outcome="stopped",
                reason="stopped",
                error=command.reason,
                stopped_by=command.by,
                stopped_by_requester=command.by_requester,
            ),
        )
    if run.stop_requested_by is not None:
        # Messages sent after the first stop must not continue the session either.
        return drop_messages(run)
    stop = StopRequested(by=command.by, by_requester=command.by_requester, reason=command.reason)
    return (stop, *drop_messages(run))


def end_run(run: Run, command: EndRun) -> tuple[RunEvent, ...]:
    """Record the end of the run.

    If a stop was requested, an interrupted run counts as stopped. If the run is being steered, it
    ends as `stopped` with reason `steered`. If it has yielded, it ends as a success with reason
    `yielded`, whatever its process did after that.

    Raises:
        LostClaim: The command's epoch is not that of the current claim.
        WrongStage: The run is over; or it is claimed and the reason is `not_claimed`, or the
            reverse.
    """
    require_holder(run, command.epoch)
    if (run.holder is None) != (command.reason == NOT_CLAIMED):
        raise WrongStage(command.action, "not claimed" if run.holder is None else "claimed")
    outcome, reason = command.outcome, command.reason
    if run.stop_requested_by is not None:
        if reason == "interrupted":
            # Its holder is gone, so the outcome is unknown; the requested stop decides.
            outcome = "stopped"
    elif run.is_steered:
        outcome, reason = "stopped", "steered"
    elif run.yielded_by is not None:
        # The run ended its own turn; a later failure of its process does not matter.
        outcome, reason = "success", "yielded"
    return (
        RunEnded(
            outcome=outcome,
            reason=reason,
            exit_code=command.exit_code,
            signal=command.signal,
            result=command.result,
            error=command.error,
            usage=command.usage,
            transcript=command.transcript,
            pending_descendants=command.pending_descendants,
            alive_until=command.alive_until,
        ),
    )


# Decisions while a spawn is prepared.


def resume_preparation(run: Run, command: ResumePreparation) -> tuple[RunEvent, ...]:
    """Give the preparation to another holder."""
    require_holder(run, command.lost_epoch)
    return (
        PreparationResumed(holder=command.holder, attempt=run.attempt + 1, reason=command.reason),
    )


def resolve_scripts(run: Run, command: ResolveScripts) -> tuple[RunEvent, ...]:
    """Record the script receipts, and the override if a script proposed another agent and won."""
    require_holder(run, command.epoch)
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
    """Create the child session, and queue the run unless it has to wait for dependencies."""
    require_holder(run, command.epoch)
    if run.child_session_key is None or run.agent_id is None:
        raise WrongStage("create the session", "not prepared")
    require_taken(run, "create the session")
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
    """Record met dependencies; queue the run when all are met, or end it if one has failed.

    No-op if the run does not wait.

    Raises:
        ReadAgain: The failed dependency is not the one named in the command's error text.
    """
    if run.stage != "session-created" or run.waits_for is None:
        return ()
    if command.failed is not None:
        if command.failed != command.culprit:
            raise ReadAgain("another run that it depends on has failed; read it again and retry")
        return (RunEnded(outcome="error", reason="dependency_failed", error=command.error),)
    queued = () if command.waits_for else _queue_if_met(run, command)
    return (*_met_events(command), *queued)


def _met_events(command: CreateSession | SettleDependencies) -> tuple[RunEvent, ...]:
    return tuple(DependencyMet(run_id=run_id, outcome=outcome) for run_id, outcome in command.met)


def _queue_if_met(run: Run, command: CreateSession | SettleDependencies) -> tuple[RunEvent, ...]:
    if command.waits_for:
        return (RunWaits(run_ids=command.waits_for),)
    depth = command.depth if isinstance(command, CreateSession) else run.depth
    return (RunQueued(lane=command.lane, lane_depth=depth),)


def refuse_spawn(run: Run, command: RefuseSpawn) -> tuple[RunEvent, ...]:
    """Refuse the spawn."""
    if command.epoch is not None:
        require_holder(run, command.epoch)
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
            webhooks=command.webhooks,
        ),
    )


def decide(run: Run, command: RunCommand) -> tuple[RunEvent, ...]:
    """Return the events to record for `command`.

    Raises:
        Rejected: The command does not fit the state of the run; nothing is to be recorded.
    """
    events = _decide(run, command)
    if events and type(events[0]) not in LIFECYCLE[run.stage]:
        raise WrongStage(command.action, run.stage)
    return events


def _decide(run: Run, command: RunCommand) -> tuple[RunEvent, ...]:
    # The most frequent commands come first, because every failed class check costs time.
    match command:
        case ResolveScripts():
            return resolve_scripts(run, command)
        case StartPreparation():
            require_holder(run, command.epoch)
            return (
                PreparationStarted(
                    child_session_key=command.child_session_key,
                    agent_id=command.agent_id,
                    steps=command.steps,
                ),
            )
        case CreateSession():
            return create_session(run, command)
        case ClaimRun():
            return claim_run(run, command)
        case StartRun():
            return start_run(run, command)
        case EndRun():
            return end_run(run, command)
        case AnnounceRun():
            return _announce(run, command)
        case ArchiveRun():
            return _archive(run, command)
        case ResumePreparation():
            return resume_preparation(run, command)
        case BeginStep():
            return begin_step(run, command)
        case TakeStep():
            return take_step(run, command)
        case SettleDependencies():
            return settle_dependencies(run, command)
        case RefuseSpawn():
            return refuse_spawn(run, command)
        case StopRun():
            return stop_run(run, command)
        case AcknowledgeAnnouncement():
            return _acknowledge(run, command)
        case ScheduleArchive():
            return _schedule(run, command)
        case QueueMessage():
            return queue_message(run, command)
        case YieldRun():
            return yield_run(run, command)
        case DropMessage():
            return drop_message(run, command)
        case FailContinuation():
            return fail_continuation(command)
        case _ if isinstance(command, EffectCommand):
            return decide_effect(run, command)
        case _:
            assert_never(command)


def _announce(run: Run, command: AnnounceRun) -> tuple[RunEvent, ...]:
    if run.stage != "ended":
        raise WrongStage("announce the run", run.stage)
    if run.is_paused:
        raise NotYet("the run is paused; another run will continue its session")
    if command.pending_descendants:
        raise NotYet(f"{command.pending_descendants} descendants are not done")
    return (
        RunAnnounced(
            disposition=command.disposition,
            reason=command.reason,
            status=command.status,
            text=command.text,
            dedupe_key=dedupe_key(run),
            origin=command.origin,
            webhooks=command.webhooks,
        ),
    )


def _acknowledge(run: Run, command: AcknowledgeAnnouncement) -> tuple[RunEvent, ...]:
    if run.inbox is None or run.inbox.disposition != "inbox":
        raise CannotDeliver("this run has no announcement to acknowledge")
    if run.inbox.acknowledged_at is not None:
        return ()
    if command.position is not None and command.position < run.inbox.position:
        # The announcement returned to the inbox since; the reader has not seen that one.
        return ()
    return (AnnouncementAcknowledged(by=command.by),)


def _archive(run: Run, command: ArchiveRun) -> tuple[RunEvent, ...]:
    if run.continued_by is not None and run.put_away_from is None:
        # It was due when it was read; a message came first and continued the session.
        raise WrongStage(command.action, f"continued by run {run.continued_by}")
    if run.queue:
        raise WrongStage(command.action, "still followed by a queued message")
    return (
        RunArchived(
            reason=command.reason,
            transcript_path=command.transcript_path,
        ),
    )


def _schedule(run: Run, command: ScheduleArchive) -> tuple[RunEvent, ...]:
    if run.put_away_from is not None or run.stage in ("archived", "refused"):
        return ()
    if command.reason == "session_closed" and run.continued_by is not None:
        raise ReadAgain("the session changed meanwhile; read it again and retry")
    return (ArchiveScheduled(reason=command.reason), *drop_messages(run))

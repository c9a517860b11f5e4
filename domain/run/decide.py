"""What follows from a command, given what is on record about the run. May be tightened any time."""

from typing import assert_never, cast

from domain.refusals import LostClaim, NotYet, Rejected, WrongStage
from domain.run.commands import (
    AcknowledgeAnnouncement,
    AnnounceRun,
    ArchiveRun,
    ClaimRun,
    CreateSession,
    EndRun,
    RefuseSpawn,
    ResolveScripts,
    ResumePreparation,
    RunCommand,
    StartPreparation,
    StartRun,
    StopRun,
)
from domain.run.events import (
    AgentOverridden,
    AnnouncementAcknowledged,
    PreparationResumed,
    PreparationStarted,
    RunAnnounced,
    RunArchived,
    RunClaimed,
    RunEnded,
    RunEvent,
    RunQueued,
    RunStarted,
    ScriptsResolved,
    SessionCreated,
    SpawnRefused,
    StopRequested,
)
from domain.run.lifecycle import LIFECYCLE, OVER, PREPARING
from domain.run.state import Run


class StopWanted(Rejected):
    """Somebody asked the run to stop before it started: its holder must end it as stopped."""


class CannotDeliver(Rejected):
    """There is no announcement that could be acknowledged."""


def decide(run: Run, command: RunCommand) -> tuple[RunEvent, ...]:
    """The events to record for `command`; raises `Rejected` when it does not fit the record."""
    events = _decide(run, command)
    if events and type(events[0]) not in LIFECYCLE[run.stage]:
        raise WrongStage(_WANTED[type(command)], run.stage)
    return events


def _decide(run: Run, command: RunCommand) -> tuple[RunEvent, ...]:
    match command:
        case ResumePreparation():
            return _resume(run, command)
        case ResolveScripts():
            return _scripts(run, command)
        case StartPreparation():
            _hold(run, command.epoch)
            return (
                PreparationStarted(
                    child_session_key=command.child_session_key,
                    agent_id=command.agent_id,
                    resources=command.resources,
                ),
            )
        case CreateSession():
            return _create(run, command)
        case RefuseSpawn():
            return _refuse(run, command)
        case ClaimRun():
            return _claim(run, command)
        case StartRun():
            return _start(run, command)
        case StopRun():
            return _stop(run, command)
        case EndRun():
            return _end(run, command)
        case AnnounceRun():
            return _announce(run, command)
        case AcknowledgeAnnouncement():
            return _acknowledge(run, command)
        case ArchiveRun():
            return _archive(command)
        case _:
            assert_never(command)


def _hold(run: Run, epoch: int) -> None:
    if run.stage in OVER:
        raise WrongStage("go on", run.stage)
    if run.epoch != epoch:
        raise LostClaim(run.epoch, epoch)


def _resume(run: Run, command: ResumePreparation) -> tuple[RunEvent, ...]:
    _hold(run, command.lost_epoch)
    return (
        PreparationResumed(holder=command.holder, attempt=run.attempt + 1, reason=command.reason),
    )


def _scripts(run: Run, command: ResolveScripts) -> tuple[RunEvent, ...]:
    _hold(run, command.epoch)
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


def _create(run: Run, command: CreateSession) -> tuple[RunEvent, ...]:
    _hold(run, command.epoch)
    if run.child_session_key is None or run.agent_id is None:
        raise WrongStage("create the session", "not prepared")
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
        ),
        RunQueued(lane=command.lane, lane_depth=command.depth),
    )


def _refuse(run: Run, command: RefuseSpawn) -> tuple[RunEvent, ...]:
    if command.epoch is not None:
        _hold(run, command.epoch)
    return (
        SpawnRefused(
            rule=command.rule,
            status=command.status,
            step=command.step,
            text=command.text,
            inputs=command.inputs,
            announcement=command.announcement,
            dedupe_key=dedupe_key(run) if command.announcement else None,
        ),
    )


def _claim(run: Run, command: ClaimRun) -> tuple[RunEvent, ...]:
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
            lane_width=command.lane_width,
            lane_running=command.lane_running,
        ),
    )


def _start(run: Run, command: StartRun) -> tuple[RunEvent, ...]:
    _hold(run, command.epoch)
    if run.holder is None:
        raise WrongStage("start the run", "not claimed")
    if run.stop_requested_by is not None:
        raise StopWanted(f"stopped by {run.stop_requested_by} before it started")
    return (
        RunStarted(
            runtime=command.runtime,
            system_prompt=command.system_prompt,
            message=command.message,
            parts=command.parts,
        ),
    )


def _stop(run: Run, command: StopRun) -> tuple[RunEvent, ...]:
    if run.stage in OVER:
        return ()
    if run.stage in PREPARING:
        return (SpawnRefused(rule="stopped", status="error", step=run.stage, text=command.text),)
    if run.holder is None or run.stage == "session-created":
        # Until it is claimed from its lane nobody executes it: there is nobody to ask.
        return (
            RunEnded(
                outcome="stopped",
                reason="stopped",
                error=command.reason,
                stopped_by=command.by,
                stopped_by_requester=command.by_requester,
            ),
        )
    if run.stop_requested_by is not None:
        return ()
    return (StopRequested(by=command.by, by_requester=command.by_requester, reason=command.reason),)


def _end(run: Run, command: EndRun) -> tuple[RunEvent, ...]:
    _hold(run, command.epoch)
    if run.holder is None:
        raise WrongStage("end the run", "not claimed")
    outcome = command.outcome
    if run.stop_requested_by is not None and command.reason == "interrupted":
        # Nobody is left to say how it ended, but it had been told to stop.
        outcome = "stopped"
    return (
        RunEnded(
            outcome=outcome,
            reason=command.reason,
            exit_code=command.exit_code,
            signal=command.signal,
            result=command.result,
            error=command.error,
            usage=command.usage,
            transcript=command.transcript,
            pending_descendants=command.pending_descendants,
        ),
    )


def _announce(run: Run, command: AnnounceRun) -> tuple[RunEvent, ...]:
    if run.stage != "ended":
        raise WrongStage("announce the run", run.stage)
    if command.pending_descendants:
        raise NotYet(f"{command.pending_descendants} descendants are not done")
    return (
        RunAnnounced(
            disposition=command.disposition,
            reason=command.reason,
            status=command.status,
            text=command.text,
            dedupe_key=dedupe_key(run),
        ),
    )


def _acknowledge(run: Run, command: AcknowledgeAnnouncement) -> tuple[RunEvent, ...]:
    if run.inbox is None or run.inbox.disposition != "inbox":
        raise CannotDeliver("this run has no announcement to acknowledge")
    if run.inbox.acknowledged_at is not None:
        return ()
    return (AnnouncementAcknowledged(by=command.by),)


def _archive(command: ArchiveRun) -> tuple[RunEvent, ...]:
    return (
        RunArchived(
            reason=command.reason,
            transcript_path=command.transcript_path,
        ),
    )


def dedupe_key(run: Run) -> str:
    """By this a receiver tells a repeated announcement of the same run."""
    return f"announce:v1:{run.child_session_key or run.session_id}:{run.run_id}"


_WANTED: dict[type[RunCommand], str] = cast(
    "dict[type[RunCommand], str]",
    {
        ResumePreparation: "resume the preparation",
        ResolveScripts: "resolve the scripts",
        StartPreparation: "start the preparation",
        CreateSession: "create the session",
        RefuseSpawn: "refuse the spawn",
        ClaimRun: "claim the run",
        StartRun: "start the run",
        StopRun: "stop the run",
        EndRun: "end the run",
        AnnounceRun: "announce the run",
        AcknowledgeAnnouncement: "acknowledge the announcement",
        ArchiveRun: "archive the run",
    },
)

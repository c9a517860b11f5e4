"""What follows from a command, given what is on record about the run. May be tightened any time."""

from typing import assert_never, cast

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
    ScheduleArchive,
    SettleDependencies,
    StartPreparation,
    StartRun,
    StopRun,
)
from domain.run.continuation_events import ArchiveScheduled
from domain.run.dedupe import dedupe_key
from domain.run.events import (
    AnnouncementAcknowledged,
    PreparationStarted,
    RunAnnounced,
    RunArchived,
    RunEvent,
)
from domain.run.execution import claim_run, end_run, start_run, stop_run
from domain.run.holding import must_hold
from domain.run.hook_commands import ConfirmHook, NoteHookFailure, ParkHook
from domain.run.hook_delivery import decide_hook
from domain.run.lifecycle import LIFECYCLE
from domain.run.preparation import (
    create_session,
    refuse_spawn,
    resolve_scripts,
    resume_preparation,
    settle_dependencies,
)
from domain.run.preparation_steps import begin_step, confirm_undo, note_undo_failure, take_step
from domain.run.state import Run
from domain.run.step_commands import BeginStep, ConfirmUndo, NoteUndoFailure, TakeStep
from domain.values.refusals import CannotDeliver, NotYet, ReadAgain, WrongStage


def decide(run: Run, command: RunCommand) -> tuple[RunEvent, ...]:
    """The events to record for `command`; raises `Rejected` when it does not fit the record."""
    events = _decide(run, command)
    if events and type(events[0]) not in LIFECYCLE[run.stage]:
        raise WrongStage(_EXPECTED_STAGES[type(command)], run.stage)
    return events


def _decide(run: Run, command: RunCommand) -> tuple[RunEvent, ...]:
    match command:
        case ResumePreparation():
            return resume_preparation(run, command)
        case ResolveScripts():
            return resolve_scripts(run, command)
        case StartPreparation():
            must_hold(run, command.epoch)
            return (
                PreparationStarted(
                    child_session_key=command.child_session_key,
                    agent_id=command.agent_id,
                    resources=command.resources,
                    steps=command.steps,
                ),
            )
        case BeginStep():
            return begin_step(run, command)
        case TakeStep():
            return take_step(run, command)
        case ConfirmUndo():
            return confirm_undo(run, command)
        case NoteUndoFailure():
            return note_undo_failure(run, command)
        case ConfirmHook() | NoteHookFailure() | ParkHook():
            return decide_hook(run, command)
        case CreateSession():
            return create_session(run, command)
        case SettleDependencies():
            return settle_dependencies(run, command)
        case RefuseSpawn():
            return refuse_spawn(run, command)
        case ClaimRun():
            return claim_run(run, command)
        case StartRun():
            return start_run(run, command)
        case StopRun():
            return stop_run(run, command)
        case EndRun():
            return end_run(run, command)
        case AnnounceRun():
            return _announce(run, command)
        case AcknowledgeAnnouncement():
            return _acknowledge(run, command)
        case ArchiveRun():
            return _archive(run, command)
        case ScheduleArchive():
            return _schedule(run, command)
        case _:
            assert_never(command)


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
            origin=command.origin,
        ),
    )


def _acknowledge(run: Run, command: AcknowledgeAnnouncement) -> tuple[RunEvent, ...]:
    if run.inbox is None or run.inbox.disposition != "inbox":
        raise CannotDeliver("this run has no announcement to acknowledge")
    if run.inbox.acknowledged_at is not None:
        return ()
    return (AnnouncementAcknowledged(by=command.by),)


def _archive(run: Run, command: ArchiveRun) -> tuple[RunEvent, ...]:
    if run.continued_by is not None and run.put_away_from is None:
        # It was due when somebody looked; a message was faster, and the session goes on.
        raise WrongStage(_EXPECTED_STAGES[ArchiveRun], f"continued by run {run.continued_by}")
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
        raise ReadAgain("the session went on meanwhile; read it and ask again")
    return (ArchiveScheduled(reason=command.reason),)


_EXPECTED_STAGES: dict[type[RunCommand], str] = cast(
    "dict[type[RunCommand], str]",
    {
        ResumePreparation: "resume the preparation",
        ResolveScripts: "resolve the scripts",
        StartPreparation: "start the preparation",
        BeginStep: "begin a step",
        TakeStep: "take a step",
        ConfirmUndo: "undo a step",
        NoteUndoFailure: "note that a step was not undone",
        ConfirmHook: "confirm that a hook was told",
        NoteHookFailure: "note that a hook was not told",
        ParkHook: "park a hook",
        CreateSession: "create the session",
        SettleDependencies: "settle the dependencies",
        RefuseSpawn: "refuse the spawn",
        ClaimRun: "claim the run",
        StartRun: "start the run",
        StopRun: "stop the run",
        EndRun: "end the run",
        AnnounceRun: "announce the run",
        AcknowledgeAnnouncement: "acknowledge the announcement",
        ArchiveRun: "archive the run",
        ScheduleArchive: "close the session",
    },
)

"""Decisions that change a run and the streams around it, recorded in one append or not at all.

A child counts from its admission until it has ended and all runs below it are announced or refused.
An announcement waits for all descendants, so checking one level down is enough.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from domain.event_types import AnyEvent
from domain.run.commands import (
    AnnounceRun,
    ArchiveRun,
    CreateSession,
    DropMessage,
    EndRun,
    FailContinuation,
    QueueMessage,
    RefuseSpawn,
    RunCommand,
    ScheduleArchive,
    SettleDependencies,
    StartRun,
    StopRun,
)
from domain.run.decide import decide as decide_run
from domain.run.events import (
    ChildrenReported,
    ContinuationFailed,
    DescendantsSettled,
    RunAnnounced,
    RunEnded,
    RunEvent,
    SpawnRefused,
    StopRequested,
)
from domain.run.lifecycle import PREPARING
from domain.run.state import PAUSES, Run
from domain.session.decide import (
    ChangeSharedContext,
    CloseSession,
    InheritSharedContext,
    ReleaseChild,
    SessionCommand,
    SettleChild,
)
from domain.session.decide import decide as decide_session
from domain.session.events import SessionObserved
from domain.session.shared_context import effective_shared_keys, limit_refusal
from domain.session.state import Session
from domain.spawn.dependencies import with_dependencies
from domain.values.record import run_stream, session_stream
from domain.values.refusals import ReadAgain, Refusal, Rejected

# Shared context: keys added by a spawn, and keys inherited by a child.


StreamChanges = list[tuple[str, AnyEvent]]


class CannotShare(Rejected):
    """The keys of the spawn do not fit with those shared since its admission."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


def share_from_spawn(
    run: Run, sessions: Mapping[str, Session], command: CreateSession
) -> StreamChanges:
    """Return the changes that add the spawn's keys to the shared context of its family.

    Raises:
        CannotShare: They do not fit anymore.
    """
    requester = sessions.get(run.requester.session_key)
    if not command.shared or requester is None:
        return []
    added = [
        (change.key, change.value.bytes) for change in command.shared if change.value is not None
    ]
    refusal = limit_refusal(effective_shared_keys(requester), added, "family")
    if refusal is not None:
        raise CannotShare(refusal)
    change = ChangeSharedContext(command.shared, cause="spawn", run_id=run.run_id)
    stream = session_stream(requester.session_key)
    return [(stream, event) for event in decide_session(requester, change)]


def inherit_for_run(run: Run, sessions: Mapping[str, Session], command: StartRun) -> StreamChanges:
    """Return the changes that record the shared context which the run's own children inherit."""
    assert run.child_session_key is not None
    own = sessions.get(run.child_session_key)
    if own is None or command.shared_context_position is None:
        return []
    inherit = InheritSharedContext(
        run_id=run.run_id,
        from_session=run.requester.session_key,
        at_position=command.shared_context_position,
        keys=command.shared_context,
    )
    stream = session_stream(own.session_key)
    return [(stream, event) for event in decide_session(own, inherit)]


class UnknownRun(Rejected):
    """The run is not on record."""


class KeyTaken(Rejected):
    """The new child's key belongs to another session; prepare again with a new key."""


class SessionWentOn(Rejected):
    """The session above has a newer run, `run_id`; read that run too and decide again."""

    def __init__(self, run_id: UUID) -> None:
        super().__init__("the parent session changed meanwhile; read it again and retry")
        self.run_id = run_id


class CascadeState(NamedTuple):
    """Recorded state of a run and of the runs and sessions around it."""

    runs: Mapping[UUID, Run]
    sessions: Mapping[str, Session]

    def run(self, run_id: UUID) -> Run:
        """Return the run. Raise `UnknownRun` if it is not on record."""
        run = self.runs.get(run_id)
        if run is None:
            raise UnknownRun(f"run {run_id} is not on record")
        return run


def streams_of(run: Run) -> tuple[str, ...]:
    """Return all streams that a decision about this run may read or write."""
    requester = run.requester
    streams = [run_stream(run.run_id), session_stream(requester.session_key)]
    if run.child_session_key is not None:
        streams.append(session_stream(run.child_session_key))
    if requester.run_id is not None:
        streams.append(run_stream(requester.run_id))
    if requester.spawned_by is not None:
        streams.append(session_stream(requester.spawned_by))
    if run.continues is not None:
        streams.append(run_stream(run.continues))
    streams += [run_stream(dependency.run_id) for dependency in run.dependencies or ()]
    return tuple(streams)


def decide(family: CascadeState, run_id: UUID, command: RunCommand) -> StreamChanges:
    """Return the changes to all streams that follow from `command` to this run.

    Raises:
        UnknownRun: The run is not on record.
        KeyTaken: The child's key belongs to another session.
        CannotShare: The keys of the spawn do not fit into the shared context.
        SessionWentOn: The session above has a newer run that was not read.
        ReadAgain: The state changed since it was read.
        Rejected: The command does not fit the state of the run.
    """
    run = family.run(run_id)
    match command:
        case EndRun() | AnnounceRun():
            pending = _pending_descendants(family, run)
            command = command.changed({"pending_descendants": pending})
        case CreateSession() | SettleDependencies() if run.dependencies:
            command = with_dependencies(run, family.runs, command)
        case _:
            pass
    events = decide_run(run, command)
    if not events:
        return []
    stream = run_stream(run_id)
    changes: StreamChanges = [
        (stream, _with_pending_descendants(family, run, event)) for event in events
    ]
    match command:
        case CreateSession():
            if run.child_session_key in family.sessions:
                raise KeyTaken(f"session {run.child_session_key} is already on record")
            changes[1:1] = [
                *share_from_spawn(run, family.sessions, command),
                _observe_child(run, command),
            ]
        case StartRun(inherits=True):
            changes += inherit_for_run(run, family.sessions, command)
        case (
            EndRun()
            | StopRun()
            | RefuseSpawn()
            | AnnounceRun()
            | SettleDependencies()
            | QueueMessage()
            | DropMessage()
            | FailContinuation()
        ):
            changes += _consequences(family, run, [event for _, event in changes])
        case ArchiveRun():
            changes += _close(family, run, "archived") + _archive_predecessors(family, run)
        case ScheduleArchive(reason="session_closed"):
            changes += _close(family, run, "closed")
        case _:
            pass
    return changes


def _with_pending_descendants(family: CascadeState, run: Run, event: RunEvent) -> RunEvent:
    if isinstance(event, RunEnded):
        return event.changed({"pending_descendants": _pending_descendants(family, run)})
    return event


def _pending_descendants(family: CascadeState, run: Run) -> int:
    if run.child_session_key is None or run.stage in PREPARING:
        return 0
    own = family.sessions.get(run.child_session_key)
    if own is None:
        raise ReadAgain("the child's session was created meanwhile; read the run again and retry")
    return len(own.unsettled)


def _consequences(family: CascadeState, run: Run, events: Sequence[AnyEvent]) -> StreamChanges:
    changes: StreamChanges = []
    for event in events:
        match event:
            case SpawnRefused():
                has_report = event.announcement is not None
                changes += _release(family, run)
                changes += _settle_child(family, run, has_report=has_report)
            case RunEnded() if event.reason in PAUSES:
                changes += _report_at_once(family, run, event)
            case RunEnded() | StopRequested() | ContinuationFailed() if not _is_awaited(
                family, run, event
            ):
                changes += _release(family, run)
            case RunAnnounced():
                has_report = event.disposition == "inbox"
                changes += _settle_child(family, run, has_report=has_report)
            case _:
                pass
    return changes


def _release(family: CascadeState, run: Run) -> StreamChanges:
    return _to_session(family, run.requester.session_key, ReleaseChild(run.run_id))


def _settle_child(family: CascadeState, run: Run, *, has_report: bool) -> StreamChanges:
    """Record in the requester's session, and for its own run if it has one, that a child is done.

    If the requester's run has yielded, the report wakes it. If it has ended and this was its last
    child, it can be announced.
    """
    requester = family.sessions.get(run.requester.session_key)
    if requester is None or run.run_id not in requester.unsettled:
        return []
    if requester.run_id is None:
        return _to_session(family, requester.session_key, SettleChild(run.run_id))
    parent = family.runs.get(requester.run_id)
    if parent is None:
        raise SessionWentOn(requester.run_id)
    reports = _reports(run, requester, has_report=has_report)
    changes = _to_session(family, requester.session_key, SettleChild(run.run_id, reports))
    is_last = requester.unsettled == (run.run_id,)
    if parent.stage != "ended":
        return changes
    if is_last:
        changes.append((run_stream(parent.run_id), DescendantsSettled()))
    if parent.is_paused and parent.end_reason == "yielded":
        if reports or is_last:
            changes.append((run_stream(parent.run_id), ChildrenReported(run_ids=reports)))
    elif is_last and not parent.is_paused:
        changes += _to_session(family, parent.requester.session_key, ReleaseChild(parent.run_id))
    return changes


def _reports(run: Run, requester: Session, *, has_report: bool) -> tuple[UUID, ...]:
    """Return the children to report to the session now; a batch is reported when all are done."""
    if run.batch is None:
        return (run.run_id,) if has_report else ()
    others = (run_id for run_id in run.batch.run_ids if run_id != run.run_id)
    return () if any(run_id in requester.unsettled for run_id in others) else run.batch.run_ids


def _report_at_once(family: CascadeState, run: Run, ended: RunEnded) -> StreamChanges:
    """Wake a run that yields if children have reported already, or if it has none to wait for."""
    own = family.sessions.get(run.child_session_key or "")
    if ended.reason != "yielded" or own is None or (own.unsettled and not own.reports):
        return []
    return [(run_stream(run.run_id), ChildrenReported(run_ids=own.reports))]


def _is_awaited(
    family: CascadeState, run: Run, event: RunEnded | StopRequested | ContinuationFailed
) -> bool:
    """Return True if the run or a descendant still holds its place among the children."""
    if isinstance(event, RunEnded):
        return event.pending_descendants > 0
    # The other events release the place only if the run is paused, that is, it has ended already.
    return run.stage != "ended" or _pending_descendants(family, run) > 0


def _close(family: CascadeState, run: Run, reason: str) -> StreamChanges:
    if run.child_session_key is None:
        return []
    return _to_session(family, run.child_session_key, CloseSession(reason=reason))


def _archive_predecessors(family: CascadeState, run: Run) -> StreamChanges:
    """Archive the session's previous run too; its archive does the same for the run before it."""
    before = family.runs.get(run.continues) if run.continues is not None else None
    if before is None:
        return []
    command = ScheduleArchive(reason="continuation_archived")
    return [(run_stream(before.run_id), event) for event in decide_run(before, command)]


def _to_session(family: CascadeState, key: str, command: SessionCommand) -> StreamChanges:
    session = family.sessions.get(key)
    if session is None:
        return []
    return [(session_stream(key), event) for event in decide_session(session, command)]


def _observe_child(run: Run, command: CreateSession) -> tuple[str, AnyEvent]:
    assert run.child_session_key is not None
    assert run.agent_id is not None
    return (
        session_stream(run.child_session_key),
        SessionObserved(
            session_id=run.session_id,
            session_key=run.child_session_key,
            display_key=run.child_session_key,
            agent_id=run.agent_id,
            depth=command.depth,
            role=command.role,
            control_scope=command.control_scope,
            spawned_by=run.requester.session_key,
            root_session_key=run.requester.root_session_key,
            run_id=run.run_id,
            asserted_by="spawn",
            sandboxed=command.plan.sandboxed,
            workspace_dir=command.plan.workspace_dir,
            depth_from="spawn",
        ),
    )

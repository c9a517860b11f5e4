"""Decisions that touch a run and the sessions above it: they are recorded in one append or not.

A child counts from its admission until it has ended and all below it are announced or refused. An
announcement waits for everything below, so it is enough to look one level down.
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

# What a family comes to share when a child is created, and what a child is given.


StreamChanges = list[tuple[str, AnyEvent]]


class CannotShare(Rejected):
    """What the spawn shares has no room beside what was shared since it was admitted."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


def share_from_spawn(
    run: Run, sessions: Mapping[str, Session], command: CreateSession
) -> StreamChanges:
    """What the spawn adds to the context of its requester's family. `CannotShare` when it does not
    fit any more."""
    requester = sessions.get(run.requester.session_key)
    if not command.shared or requester is None:
        return []
    added = [(one.key, one.value.bytes) for one in command.shared if one.value is not None]
    refusal = limit_refusal(effective_shared_keys(requester), added, "family")
    if refusal is not None:
        raise CannotShare(refusal)
    change = ChangeSharedContext(command.shared, cause="spawn", run_id=run.run_id)
    stream = session_stream(requester.session_key)
    return [(stream, event) for event in decide_session(requester, change)]


def inherit_for_run(run: Run, sessions: Mapping[str, Session], command: StartRun) -> StreamChanges:
    """What the session of the run starts with, for its own children."""
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
    """There is no such run."""


class KeyTaken(Rejected):
    """The key minted for the child is another session's: prepare again with a new one."""


class SessionWentOn(Rejected):
    """The session above has another run by now, which has to be looked at too: decide again with
    that one."""

    def __init__(self, run_id: UUID) -> None:
        super().__init__("the session above went on meanwhile; read it and ask again")
        self.run_id = run_id


class CascadeState(NamedTuple):
    """What is on record about a run and those around it."""

    runs: Mapping[UUID, Run]
    sessions: Mapping[str, Session]

    def run(self, run_id: UUID) -> Run:
        """The run; `UnknownRun` when there is none."""
        run = self.runs.get(run_id)
        if run is None:
            raise UnknownRun(f"run {run_id} is not on record")
        return run


def streams_of(run: Run) -> tuple[str, ...]:
    """Every stream that a decision about this run may read or write."""
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
    streams += [run_stream(one.run_id) for one in run.dependencies or ()]
    return tuple(streams)


def decide(family: CascadeState, run_id: UUID, command: RunCommand) -> StreamChanges:
    """The changes of every stream that `command` to this run brings about."""
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
        (stream, _with_pending_descendants(family, run, one)) for one in events
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
        raise ReadAgain("the child's session was created meanwhile; read the run and ask again")
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
    """Tell the requester's own run, when it is one, that this child is done."""
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
    """The children of which their session may be told once this one is done: those of a batch all
    together, when the last of them is."""
    if run.batch is None:
        return (run.run_id,) if has_report else ()
    others = (one for one in run.batch.run_ids if one != run.run_id)
    return () if any(one in requester.unsettled for one in others) else run.batch.run_ids


def _report_at_once(family: CascadeState, run: Run, ended: RunEnded) -> StreamChanges:
    """What a run that yields can be told already, and that there is nothing more to wait for."""
    own = family.sessions.get(run.child_session_key or "")
    if ended.reason != "yielded" or own is None or (own.unsettled and not own.reports):
        return []
    return [(run_stream(run.run_id), ChildrenReported(run_ids=own.reports))]


def _is_awaited(
    family: CascadeState, run: Run, event: RunEnded | StopRequested | ContinuationFailed
) -> bool:
    """Whether the place of the run is still held: by itself, or by something below it."""
    if isinstance(event, RunEnded):
        return event.pending_descendants > 0
    # Of a run that is over, and that its session was to go on in the place of.
    return run.stage != "ended" or _pending_descendants(family, run) > 0


def _close(family: CascadeState, run: Run, reason: str) -> StreamChanges:
    if run.child_session_key is None:
        return []
    return _to_session(family, run.child_session_key, CloseSession(reason=reason))


def _archive_predecessors(family: CascadeState, run: Run) -> StreamChanges:
    """The run that this one continues follows it, and so on to the first of the session."""
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

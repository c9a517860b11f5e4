"""Events from the announcement of a run to its archive."""

from collections.abc import Sequence

from application.delivery.announce import disposition_of, stats_of
from application.log.texts import TextStore
from benchmarks.history.lives.effects import delivered, told, undone, webhooks_of
from benchmarks.history.lives.requests import Child, commanded
from benchmarks.history.world.scheduler import Life, Wait, ask
from benchmarks.history.world.society import Society
from domain.delivery.announcement import ChildFinding, announce, status_of, stop_note
from domain.run.commands import (
    AcknowledgeAnnouncement,
    AnnounceRun,
    ArchiveRun,
    FailContinuation,
)
from domain.run.state import Run
from domain.values.record import run_stream

WAKE_SECONDS = 0.1
_NOT_WOKEN = 'Agent "planner" is not configured.'
ACKNOWLEDGED_SHARE = 0.6
ACKNOWLEDGE_SECONDS = 20.0


def announced(society: Society, child: Child, run: Run) -> Life[None]:
    """Announce the run to its requester, once nothing below it is left to wait for."""
    stream = run_stream(run.run_id)
    yield from _woken_in_vain(society, child, run)
    while society.log.runs[run.run_id].pending_descendants:
        yield Wait(None, stream)
    yield Wait(0.02)
    run = society.log.runs[run.run_id]
    text_store = child.text_store(society)
    command = _announcement(society, child, run, text_store)
    yield from ask(commanded(society, run, (command,), text_store))


def _woken_in_vain(society: Society, child: Child, run: Run) -> Life[None]:
    """Wake a yielded run whose agent is no longer configured, so that it is announced after all."""
    stream = run_stream(run.run_id)
    while (run := society.log.runs[run.run_id]).is_paused:
        if run.wake_at is None:
            yield Wait(None, stream)
            continue
        yield Wait(WAKE_SECONDS)
        text_store = child.text_store(society)
        error = text_store.store("refusal", _NOT_WOKEN)
        failed = FailContinuation(run_id=society.ids.run_id(), error=error)
        yield from ask(commanded(society, run, (failed,), text_store))


def _announcement(society: Society, child: Child, run: Run, text_store: TextStore) -> AnnounceRun:
    outcome = run.outcome or "unknown"
    disposition, reason = disposition_of(run)
    text = None
    if disposition == "inbox":
        notes = [child.error] if child.error else []
        if outcome == "stopped":
            notes = [stop_note(run.stop_requested_by or "somebody", child.stop_reason)]
        announcement = announce(
            outcome=outcome,
            result=child.result,
            stats=stats_of(run),
            notes=[*notes, *run.warnings],
            findings=_findings(child) if run.role == "orchestrator" else (),
        )
        if announcement is None:
            disposition, reason = "skipped", "the child asked not to be announced"
        else:
            text = announcement.text
    return AnnounceRun(
        disposition=disposition,
        reason=reason,
        status=status_of(outcome),
        text=text_store.store("announcement", text) if text else None,
        pending_descendants=0,
        webhooks=webhooks_of(society, child, run) if text else (),
    )


def _findings(child: Child) -> tuple[ChildFinding, ...]:
    return tuple(
        ChildFinding(
            name=child.label or str(child.run_id),
            outcome=child.outcome,
            result=child.result,
            error=child.error,
        )
        for child in child.children
        if child.outcome is not None
    )


def acknowledgement_due(society: Society, run: Run) -> float | None:
    """Return in how many seconds the announcement is acknowledged, or None if it is not."""
    inbox = run.inbox
    if inbox is None or inbox.disposition != "inbox" or inbox.acknowledged_at is not None:
        return None
    if society.random.random() >= ACKNOWLEDGED_SHARE:
        return None
    return society.random.expovariate(1 / ACKNOWLEDGE_SECONDS)


def acknowledged(society: Society, run: Run) -> Life[None]:
    """Acknowledge the announcement of a run in its requester's inbox."""
    asked_by = society.log.sessions[run.requester.session_key]
    command = AcknowledgeAnnouncement(by=asked_by.session_key)
    yield from ask(commanded(society, run, (command,)))


def taken(society: Society, child: Child) -> Life[None]:
    """Perform due effects, and perhaps acknowledge the announcement."""
    run = yield from _seen_to(society, child)
    due = acknowledgement_due(society, run)
    left = _seconds_left(society, run)
    if due is not None and (left is None or due < left):
        yield Wait(due)
        yield from acknowledged(society, run)


def put_away(society: Society, runs: Sequence[Child]) -> Life[None]:
    """Archive all runs of a session, newest first; each makes the previous one due."""
    for child in reversed(runs):
        if child.run_id in society.log.runs:
            yield from _one_put_away(society, child)


def _one_put_away(society: Society, child: Child) -> Life[None]:
    """Archive a run when it is due, and perhaps acknowledge it before or after."""
    run = yield from _seen_to(society, child)
    due, left = acknowledgement_due(society, run), _seconds_left(society, run)
    if due is not None and (left is None or due < left):
        yield Wait(due)
        yield from acknowledged(society, run)
        due = None
    if run.archive_at is not None:
        yield Wait(max(0.0, _seconds_left(society, run) or 0.0))
        archive = ArchiveRun(
            reason="cleanup" if run.cleanup == "delete" else "due", transcript_path=None
        )
        yield from ask(commanded(society, run, (archive,)))
        yield from _seen_to(society, child)
    if due is not None:
        yield Wait(due)
        yield from acknowledged(society, run)


def _seen_to(society: Society, child: Child) -> Life[Run]:
    """Perform due undos and hooks. Return the run after them."""
    yield from undone(society, child, society.log.runs[child.run_id])
    yield from told(society, child, society.log.runs[child.run_id])
    yield from delivered(society, child, society.log.runs[child.run_id])
    return society.log.runs[child.run_id]


def _seconds_left(society: Society, run: Run) -> float | None:
    """Return the seconds until the run is archived, or None if it is never archived."""
    if run.archive_at is None:
        return None
    return (run.archive_at - society.scheduler.now).total_seconds()

"""How those who spawned are told of an end."""

from application.delivery.announce import disposition_of, stats_of
from application.log.texts import TextStore
from benchmarks.history.requests import Child, commanded
from benchmarks.history.society import Society
from benchmarks.history.town import Life, Wait, ask
from domain.delivery.announcement import ChildFinding, announce, status_of, stop_note
from domain.run.commands import AcknowledgeAnnouncement, AnnounceRun
from domain.run.state import Run
from domain.values.record import run_stream

ACKNOWLEDGED_SHARE = 0.6
ACKNOWLEDGE_SECONDS = 20.0


def announced(society: Society, child: Child, run: Run) -> Life[None]:
    """Told to the requester, once nothing below is left to wait for."""
    stream = run_stream(run.run_id)
    while society.log.runs[run.run_id].pending_descendants:
        yield Wait(None, stream)
    yield Wait(0.02)
    run = society.log.runs[run.run_id]
    text_store = child.text_store(society)
    command = _announcement(child, run, text_store)
    yield from ask(commanded(society, run, (command,), text_store))


def _announcement(child: Child, run: Run, text_store: TextStore) -> AnnounceRun:
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
            disposition, reason = "skipped", "the child asked that nobody be told"
        else:
            text = announcement.text
    return AnnounceRun(
        disposition=disposition,
        reason=reason,
        status=status_of(outcome),
        text=text_store.store("announcement", text) if text else None,
        pending_descendants=0,
    )


def _findings(child: Child) -> tuple[ChildFinding, ...]:
    return tuple(
        ChildFinding(
            name=one.label or str(one.run_id),
            outcome=one.outcome,
            result=one.result,
            error=one.error,
        )
        for one in child.children
        if one.outcome is not None
    )


def acknowledgement_due(society: Society, run: Run) -> float | None:
    """In how many seconds somebody takes what lies in the inbox; None when nobody does."""
    inbox = run.inbox
    if inbox is None or inbox.disposition != "inbox" or inbox.acknowledged_at is not None:
        return None
    if society.random.random() >= ACKNOWLEDGED_SHARE:
        return None
    return society.random.expovariate(1 / ACKNOWLEDGE_SECONDS)


def acknowledged(society: Society, run: Run) -> Life[None]:
    """Taken from the inbox."""
    asked_by = society.log.sessions[run.requester.session_key]
    command = AcknowledgeAnnouncement(by=asked_by.session_key)
    yield from ask(commanded(society, run, (command,)))

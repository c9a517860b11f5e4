"""The life of one spawn from its request to its archive, and of those it spawns itself."""

from application.announcing import stats_of
from application.keeping import Keeper
from benchmarks.history.execution import (
    asker_of,
    claimed,
    executed,
    session_streams,
    waits_for_children,
)
from benchmarks.history.fates import Fate
from benchmarks.history.hooks import told
from benchmarks.history.preparation import prepared
from benchmarks.history.requests import Asker, Child, commanded, new_spawn
from benchmarks.history.society import Society
from benchmarks.history.steps import undone
from benchmarks.history.town import Life, Wait, ask
from domain.announcement import ChildFinding, announce, status_of, stopped_note
from domain.refusals import Rejected
from domain.run.commands import AcknowledgeAnnouncement, AnnounceRun, ArchiveRun
from domain.run.lifecycle import OVER
from domain.run.state import Run
from domain.stream import run_stream

ACKNOWLEDGED_SHARE = 0.6
ACKNOWLEDGE_SECONDS = 20.0
CROWDED_SHARE = 0.12
IMPATIENT_SHARE = 0.3
LEAF_TRIES_SHARE = 0.02
TRIES_SECONDS = 0.4


def spawn(
    society: Society,
    asker: Asker,
    siblings: list[Child] | None = None,
    *,
    fate: Fate | None = None,
    agent_id: str | None = "",
) -> Life[None]:
    """One spawn of this session and all that comes of it. Without a fate it draws one.

    The session is held from now on, whenever the life begins."""
    society.log.hold(asker.streams)
    return _spawned(society, asker, siblings, fate, agent_id)


def _spawned(
    society: Society,
    asker: Asker,
    siblings: list[Child] | None,
    fate: Fate | None,
    agent_id: str | None,
) -> Life[None]:
    child, admission = new_spawn(society, asker, fate or society.deck.draw(), agent_id=agent_id)
    streams = [run_stream(child.run_id), *asker.streams]
    society.log.hold(streams[:1])
    society.busy_lives += 1
    try:
        run = (yield from ask(admission)).runs[child.run_id]
        if siblings is not None:
            siblings.append(child)
        if run.stage != "refused":
            yield from _lives(society, child, run)
    except Rejected:
        # The session that asked is over, or the spawn was stopped before it came to be.
        pass
    finally:
        society.busy_lives -= 1
    society.resting_lives += 1
    try:
        if child.run_id in society.log.runs:
            yield from _put_away(society, child, society.log.runs[child.run_id])
    finally:
        society.resting_lives -= 1
        created = society.log.runs.get(child.run_id)
        society.log.let_go([*streams, *(session_streams(created) if created else ())])


def _lives(society: Society, child: Child, run: Run) -> Life[None]:
    """From the admission to the announcement, or to a refusal."""
    run = yield from prepared(society, child, run)
    if run.stage == "queued":
        yield from told(society, child, run)
        run = yield from claimed(society, child, run)
    if run.stage == "queued":
        run = yield from executed(society, child, run, _works(society, child, run))
    child.outcome = run.outcome
    if run.stage == "ended":
        yield from _announced(society, child, run)


def _works(society: Society, child: Child, run: Run) -> Life[None] | None:
    """What a child does with sub-agents of its own; a leaf may try, and is refused."""
    if run.role == "orchestrator" and run.agent_id == "planner":
        return _orchestrates(society, child, run)
    if run.role == "leaf" and society.random.random() < LEAF_TRIES_SHARE:
        return _tries(society, child, run)
    return None


def _tries(society: Society, child: Child, run: Run) -> Life[None]:
    yield Wait(TRIES_SECONDS)
    if run.run_id in society.log.runs:
        yield from spawn(society, asker_of(run), child.children)


def _orchestrates(society: Society, child: Child, run: Run) -> Life[None]:
    asker = asker_of(run)
    crowded = society.random.random() < CROWDED_SHARE
    for _ in range(society.random.randint(6, 8) if crowded else society.random.randint(1, 4)):
        yield Wait(society.random.expovariate(1 / TRIES_SECONDS))
        own = society.log.runs.get(run.run_id)
        if own is None or own.stage in OVER or society.is_closing:
            return
        society.town.begin(spawn(society, asker, child.children))
    if society.random.random() >= IMPATIENT_SHARE:
        yield Wait(TRIES_SECONDS)
        yield from waits_for_children(society, run)


def _announced(society: Society, child: Child, run: Run) -> Life[None]:
    """Told to the requester, once nothing below is left to wait for."""
    stream = run_stream(run.run_id)
    while society.log.runs[run.run_id].pending_descendants:
        yield Wait(None, stream)
    yield Wait(0.02)
    run = society.log.runs[run.run_id]
    keeper = child.keeper(society)
    command = _announcement(child, run, keeper)
    yield from ask(commanded(society, run, (command,), keeper))


def _announcement(child: Child, run: Run, keeper: Keeper) -> AnnounceRun:
    outcome = run.outcome or "unknown"
    disposition, reason, text = "inbox", None, None
    if outcome == "stopped" and run.stop_by_requester:
        disposition, reason = "skipped", "its requester stopped it"
    elif not run.options.expects_completion_message:
        disposition, reason = "not_required", "no completion message was expected"
    else:
        notes = [child.error] if child.error else []
        if outcome == "stopped":
            notes = [stopped_note(run.stop_requested_by or "somebody", child.stop_reason)]
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
        text=keeper.keep("announcement", text) if text else None,
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


def _put_away(society: Society, child: Child, run: Run) -> Life[None]:
    """Acknowledged perhaps, and archived when its time has come, in either order."""
    yield from undone(society, child, run)
    yield from told(society, child, run)
    lies_there = run.inbox is not None and run.inbox.disposition == "inbox"
    acknowledges = lies_there and society.random.random() < ACKNOWLEDGED_SHARE
    delay = society.random.expovariate(1 / ACKNOWLEDGE_SECONDS)
    left = (run.archive_at - society.town.now).total_seconds() if run.archive_at else None
    if acknowledges and (left is None or delay < left):
        yield Wait(delay)
        yield from _acknowledged(society, run)
        acknowledges = False
    if run.archive_at is not None:
        yield Wait(max(0.0, (run.archive_at - society.town.now).total_seconds()))
        archive = ArchiveRun(
            reason="cleanup" if run.cleanup == "delete" else "due", transcript_path=None
        )
        yield from ask(commanded(society, run, (archive,)))
    if acknowledges:
        yield Wait(delay)
        yield from _acknowledged(society, run)


def _acknowledged(society: Society, run: Run) -> Life[None]:
    asked_by = society.log.sessions[run.requester.session_key]
    command = AcknowledgeAnnouncement(by=asked_by.session_key)
    yield from ask(commanded(society, run, (command,)))

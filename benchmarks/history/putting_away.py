"""What comes after a run's announcement, until its session is put away."""

from collections.abc import Sequence

from benchmarks.history.announcing import acknowledged, acknowledgement_due
from benchmarks.history.hooks import told
from benchmarks.history.requests import Child, commanded
from benchmarks.history.society import Society
from benchmarks.history.steps import undone
from benchmarks.history.town import Life, Wait, ask
from domain.run.commands import ArchiveRun
from domain.run.state import Run


def taken(society: Society, child: Child) -> Life[None]:
    """What is due at once, and the announcement perhaps taken from the inbox."""
    run = yield from _seen_to(society, child)
    due = acknowledgement_due(society, run)
    left = _seconds_left(society, run)
    if due is not None and (left is None or due < left):
        yield Wait(due)
        yield from acknowledged(society, run)


def put_away(society: Society, runs: Sequence[Child]) -> Life[None]:
    """All runs of a session, the newest one first; each makes the one before it due."""
    for child in reversed(runs):
        if child.run_id in society.log.runs:
            yield from _one_put_away(society, child)


def _one_put_away(society: Society, child: Child) -> Life[None]:
    """Acknowledged perhaps, and archived when its time has come, in either order."""
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
    """Undone and told what is due; gives the run as it is then."""
    yield from undone(society, child, society.log.runs[child.run_id])
    yield from told(society, child, society.log.runs[child.run_id])
    return society.log.runs[child.run_id]


def _seconds_left(society: Society, run: Run) -> float | None:
    """Until it is archived; None when that has no time."""
    if run.archive_at is None:
        return None
    return (run.archive_at - society.town.now).total_seconds()

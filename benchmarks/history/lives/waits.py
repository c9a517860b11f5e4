"""Waits of runs for dependencies and for their children."""

from benchmarks.history.lives.requests import Asker, Child, commanded
from benchmarks.history.world.scheduler import Life, Wait, ask
from benchmarks.history.world.society import Society
from domain.run.commands import RefuseSpawn, SettleDependencies
from domain.run.facts import SUBAGENT_LANE
from domain.run.state import Run
from domain.spawn.dependencies import DependencyFailed, evaluate_dependencies
from domain.values.record import run_stream
from domain.values.refusals import Rejected

POLL_SECONDS = 2.0


def awaited(society: Society, asker: Asker) -> Run | None:
    """Return the newest run that the session requested and that is not over, or None."""
    # They are in the order in which they were created.
    return next(
        (
            run
            for run in reversed(society.log.runs.values())
            if run.stage in ("queued", "started") and run.requester.session_key == asker.session_key
        ),
        None,
    )


def waited(society: Society, child: Child, run: Run) -> Life[Run]:
    """Wait until the run's dependencies are met and it is queued, or it ends because one failed."""
    while (run := society.log.runs[run.run_id]).waits_for and run.stage == "session-created":
        judged = evaluate_dependencies(run, society.log.runs)
        if judged.failed is None and judged.waits_for == run.waits_for:
            yield Wait(POLL_SECONDS, run_stream(judged.waits_for[0]))
            continue
        text_store = child.text_store(society)
        failed = judged.failed
        if failed is not None:
            child.error = f'it was not started: its dependency "{failed.name}" failed'
        settle = SettleDependencies(
            lane=SUBAGENT_LANE,
            culprit=failed.run_id if failed is not None else None,
            error=text_store.store("error", child.error or "") if failed is not None else None,
        )
        try:
            yield from ask(commanded(society, run, (settle,), text_store))
        except Rejected:
            yield Wait(POLL_SECONDS)
    return run


def waits_for_children(society: Society, run: Run) -> Life[None]:
    """Wait until all children are announced or refused, or the run is stopping."""
    assert run.child_session_key is not None
    key, stream = run.child_session_key, run_stream(run.run_id)
    while (own := society.log.runs.get(run.run_id)) is not None:
        if own.stop_requested_by is not None or not society.log.sessions[key].unsettled:
            return
        yield Wait(POLL_SECONDS, stream)


def refused_for(run: Run, failed: DependencyFailed, child: Child, society: Society) -> Life[Run]:
    """Refuse a run whose dependency failed during its preparation."""
    text_store = child.text_store(society)
    refuse = RefuseSpawn(
        epoch=run.epoch,
        rule="dependency_failed",
        status="error",
        step="preparation",
        text=text_store.store("refusal", str(failed)),
    )
    appended = yield from ask(commanded(society, run, (refuse,), text_store))
    return appended.runs[run.run_id]

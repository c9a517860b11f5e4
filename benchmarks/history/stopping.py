"""Those who stop a run and all below it."""

from application.envelope import Actor
from application.ingredients import refusal_announcement
from benchmarks.history.requests import Child, commanded
from benchmarks.history.society import Society
from benchmarks.history.town import Life, ask
from domain.refusals import Rejected
from domain.run.commands import StopRun
from domain.run.lifecycle import OVER, PREPARING


def stop(society: Society, child: Child, by: Actor, reason: str | None) -> Life[None]:
    """Somebody stops a run and all below it."""
    run = society.log.runs.get(child.run_id)
    if run is None or run.stage in OVER:
        return
    keeper = child.keeper(society)
    by_requester = by.session == run.requester.session_key
    text = f"the spawn was stopped by {by.name} before its session was created"
    child.stop_reason = child.stop_reason or reason
    told = by_requester or society.random.random() < 0.5 or run.stage not in PREPARING
    announcement = None if told else refusal_announcement(run, text)
    command = StopRun(
        by=by.name,
        by_requester=by_requester,
        reason=keeper.keep("stopReason", reason) if reason else None,
        text=keeper.keep("refusal", text),
        announcement=keeper.keep("announcement", announcement) if announcement else None,
    )
    try:
        yield from ask(commanded(society, run, (command,), keeper, actor=by))
    except Rejected:
        return
    for one in child.children:
        yield from stop(society, one, by, reason)

"""Stops of runs and sessions, with everything below them."""

from application.context.prompt_inputs import refusal_announcement
from application.log.envelope import Actor
from benchmarks.history.lives.effects import webhooks_of
from benchmarks.history.lives.requests import Child, commanded
from benchmarks.history.world.scheduler import Life, ask
from benchmarks.history.world.society import Society
from domain.run.commands import ScheduleArchive, StopRun
from domain.run.lifecycle import OVER, PREPARING
from domain.values.refusals import Rejected


def stop(
    society: Society,
    child: Child,
    by: Actor,
    reason: str | None,
    *,
    is_of_session: bool = False,
    with_requester: bool = False,
) -> Life[None]:
    """Stop a run and everything below it. With `is_of_session`, stop its session and the runs that
    it spawned, too.
    """
    run = society.log.runs.get(child.run_id)
    if run is None or run.stage in OVER:
        return
    text_store = child.text_store(society)
    by_requester = with_requester or by.session == run.requester.session_key
    text = f"the spawn was stopped by {by.name} before its session was created"
    child.stop_reason = child.stop_reason or reason
    result = by_requester or society.random.random() < 0.5 or run.stage not in PREPARING
    announcement = None if result else refusal_announcement(run, text)
    command = StopRun(
        by=by.name,
        by_requester=by_requester,
        reason=text_store.store("stopReason", reason) if reason else None,
        text=text_store.store("refusal", text),
        announcement=text_store.store("announcement", announcement) if announcement else None,
        webhooks=webhooks_of(society, child, run) if announcement else (),
    )
    try:
        yield from ask(commanded(society, run, (command,), text_store, actor=by))
    except Rejected:
        return
    below = is_of_session or with_requester
    for item in child.children:
        yield from stop(society, item, by, reason, with_requester=below)


def stop_session(society: Society, last: Child, by: Actor, reason: str | None) -> Life[None]:
    """Stop a session of mode `session`. It is closed first, so that it takes no message
    meanwhile.
    """
    run = society.log.runs[last.run_id]
    close = ScheduleArchive(reason="session_closed")
    yield from ask(commanded(society, run, (close,), actor=by))
    yield from stop(society, last, by, reason, is_of_session=True)

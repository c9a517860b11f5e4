"""The sub-agents of a session, as the tools number and name them, and how they are waited for."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from application.ports.registry import RunQuery
from application.queries.views.run import run_summaries
from application.queries.wait import wait_for_growth
from domain.run.lifecycle import SETTLED
from domain.run.state import Run
from infrastructure.contract.subagents import RECENT, Subagent, Subagents, subagents_of
from infrastructure.inbound.mcp.tools.call import McpCall, members_of

RUNS_LISTED_MAX = 200
"""So many of the newest runs of a session are looked through for those that ended lately."""

CONTINUATIONS_MAX = 1_000
STEP_SECONDS_MAX = 10.0
"""A wait tells its caller at least so often that it goes on."""

_TURNING_POINTS = ("RunAnnounced", "RunEnded", "SpawnRefused", "RunContinued", "MessagesDropped")
"""The events behind which a wait looks again."""


async def active_runs(call: McpCall) -> list[Run]:
    """The newest run of each sub-agent that holds a place of its session: one that is at work, or
    below which somebody is. However many there have been, these are few."""
    session = await call.services.work.registry.session(call.session_key)
    runs: dict[UUID, Run] = {}
    for run_id in session.counted if session is not None else ():
        run = await newest_of_session(call, await call.services.work.run(run_id))
        runs[run.session_id] = run
    return list(runs.values())


async def subagents(call: McpCall, recent: timedelta = RECENT) -> Subagents:
    """The children of the caller's session; of those that have ended and are not announced it is
    looked up for how many below them they wait."""
    services = call.services
    newest = await services.work.registry.runs(
        RunQuery(requester=call.session_key),
        at=await services.work.log.head(),
        limit=RUNS_LISTED_MAX,
    )
    runs = {one.run_id: one for one in (*await active_runs(call), *newest)}
    summaries = await run_summaries(tuple(runs.values()), services.work.contents, services.run_bars)
    known = subagents_of([members_of(one) for one in summaries], datetime.now(UTC), recent)
    active = [await _with_pending(call, one) for one in known.active]
    return Subagents(tuple(active), known.recent)


async def _with_pending(call: McpCall, one: Subagent) -> Subagent:
    if one.run.get("stage") != "ended":
        return one
    key = str(one.run["childSessionKey"])
    pending, _ = await call.services.work.registry.descendants(key)
    return replace(one, pending=pending)


async def awaited_runs(call: McpCall) -> list[Run]:
    """The sub-agents that are at work, and those whose reports lie in the inbox of the session and
    were not taken, the earliest first. One that has ended and is not announced yet holds no place
    any more; it is among the newest."""
    # In this order: one that is announced meanwhile is found by the second look.
    active = await active_runs(call)
    newest = await call.services.work.registry.runs(
        RunQuery(requester=call.session_key),
        at=await call.services.work.log.head(),
        limit=RUNS_LISTED_MAX,
    )
    found = [one for one in reversed(newest) if is_untaken(one) or not is_over(one)]
    runs = {one.run_id: one for one in (*found, *active)}
    return list(runs.values())


def is_untaken(run: Run) -> bool:
    """Whether what a run reports lies in an inbox and was not taken."""
    inbox = run.inbox
    return inbox is not None and inbox.disposition == "inbox" and inbox.acknowledged_at is None


async def newest_of_session(call: McpCall, run: Run) -> Run:
    """The run in which the session of a run goes on."""
    for _ in range(CONTINUATIONS_MAX):
        if run.continued_by is None:
            return run
        run = await call.services.work.run(run.continued_by)
    return run


def is_over(run: Run) -> bool:
    """Whether nothing more comes of a run by itself: it was refused, or told its requester."""
    return run.stage in SETTLED and not run.queue


@dataclass(frozen=True, slots=True)
class Awaited:
    """What a wait has come to: the newest runs of the sessions that were waited for."""

    settled: tuple[Run, ...]
    open: tuple[Run, ...]


async def wait_for_runs(
    call: McpCall, runs: Sequence[Run], seconds: float, *, enough: int | None = None
) -> Awaited:
    """Wait until so many of the runs (without a number all of them), or what goes on behind them,
    are settled, so many seconds at most. The caller is told how far that is; when it gives up, the
    runs go on."""
    enough = len(runs) if enough is None else min(enough, len(runs))
    services, deadline, told = call.services, time.monotonic() + seconds, 0
    while True:
        position = services.tail.position
        now = [await newest_of_session(call, await services.work.run(one.run_id)) for one in runs]
        settled = tuple(one for one in now if is_over(one))
        if len(settled) >= enough or time.monotonic() >= deadline or services.closing():
            return Awaited(settled, tuple(one for one in now if not is_over(one)))
        told += 1
        await call.report(told, f"{len(settled)} of {len(now)} sub-agents are done")
        await wait_for_growth(
            services,
            now[0].run_id if len(now) == 1 else None,
            after=position,
            deadline=min(deadline, time.monotonic() + STEP_SECONDS_MAX),
            types=_TURNING_POINTS,
        )

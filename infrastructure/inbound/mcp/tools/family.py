"""Sub-agents of a session: lookup by the names that models use, and waiting."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from application.ports.registry import InboxQuery, RunQuery
from application.queries.session_reference import UUID_TEXT
from application.queries.views.run import run_summaries
from application.queries.wait import wait_for_growth
from application.session.waiting_messages import find_run
from domain.run.lifecycle import SETTLED
from domain.run.state import Run
from infrastructure.contract.subagents import (
    RECENT,
    TOOL_WORDS,
    Subagent,
    Subagents,
    TargetError,
    find_subagent,
    subagents_of,
)
from infrastructure.inbound.mcp.tools.call import McpCall, ToolInputError, members_of

RUNS_LISTED_MAX = 200
"""Number of the newest runs of a session that are searched for recent ends and unread reports."""

_REPORTED = ("announced", "archived")
_CREATED = ("session-created", "queued", "started", "ended", *_REPORTED)

STEP_SECONDS_MAX = 10.0
"""Maximum time between two progress reports of a wait."""

_TURNING_POINTS = ("RunAnnounced", "RunEnded", "SpawnRefused", "RunContinued", "MessagesDropped")
"""Events after which a wait reads the runs again."""


async def active_runs(call: McpCall) -> list[Run]:
    """Return the newest run of each active sub-agent.

    A sub-agent is active while it or a descendant is at work. The configuration limits their
    number.
    """
    session = await call.services.work.registry.session(call.session_key)
    runs: dict[UUID, Run] = {}
    for run_id in session.counted if session is not None else ():
        run = await newest_of_session(call, await call.services.work.run(run_id))
        runs[run.session_id] = run
    return list(runs.values())


async def subagents(call: McpCall, recent: timedelta = RECENT) -> Subagents:
    """Return the children of the caller's session.

    For a child that has ended but is not announced, also count the descendants that it waits for.
    """
    services = call.services
    newest = await _newest_runs(call, _CREATED)
    runs = {run.run_id: run for run in (*await active_runs(call), *newest)}
    summaries = await run_summaries(tuple(runs.values()), services.work.contents, services.run_bars)
    members = [members_of(summary) for summary in summaries]
    known = subagents_of(members, services.work.log.now(), recent)
    active = [await _with_pending(call, subagent) for subagent in known.active]
    return Subagents(tuple(active), known.recent)


async def _newest_runs(call: McpCall, stages: tuple[str, ...]) -> Sequence[Run]:
    return await call.services.work.registry.runs(
        RunQuery.where(requester=call.session_key, stage=stages),
        at=await call.services.work.log.head(),
        limit=RUNS_LISTED_MAX,
    )


async def _with_pending(call: McpCall, subagent: Subagent) -> Subagent:
    if subagent.run.get("stage") != "ended":
        return subagent
    key = str(subagent.run["childSessionKey"])
    pending, _ = await call.services.work.registry.descendants(key)
    return replace(subagent, pending=pending)


async def find_target(call: McpCall, name: str, recent: timedelta = RECENT) -> Subagent:
    """Return the sub-agent with this name.

    A run id or session key is looked up first, and means the newest run of its session.

    Raises:
        ToolInputError: No sub-agent has the name, or several have it.
    """
    run = await _run_of_name(call, name.strip())
    if run is not None:
        work, bars = call.services.work, call.services.run_bars
        newest = await newest_of_session(call, run)
        (summary,) = await run_summaries((newest,), work.contents, bars)
        return await _with_pending(call, Subagent(members_of(summary), work.log.now()))
    try:
        return find_subagent(await subagents(call, recent), name, TOOL_WORDS)
    except TargetError as error:
        raise ToolInputError(error.message) from None


async def _run_of_name(call: McpCall, name: str) -> Run | None:
    registry = call.services.work.registry
    run: Run | None = None
    if UUID_TEXT.fullmatch(name):
        run = await find_run(call.services.work, UUID(name))
    elif ":" in name:
        run = next(iter(await registry.runs_of_session(name, limit=1)), None)
    if run is None or run.requester.session_key != call.session_key or run.stage == "refused":
        return None
    return run


async def awaited_runs(call: McpCall) -> list[Run]:
    """Return the sub-agents that are active, or have ended and are not announced yet."""
    # In this order: the second query finds a run that ends in between.
    active = await active_runs(call)
    ended = await _newest_runs(call, ("ended",))
    runs = {run.run_id: run for run in (*active, *ended) if not is_over(run)}
    return list(runs.values())


async def unread_reports(call: McpCall) -> list[Run]:
    """Return the newest runs with an unacknowledged report, in the order of the inbox."""
    unread = [run for run in await _newest_runs(call, _REPORTED) if is_unread(run)]
    return sorted(unread, key=inbox_position)


async def reports_behind(call: McpCall, position: int, limit: int) -> Sequence[Run]:
    """Return the runs with reports after a position, in the order of the inbox."""
    return await call.services.work.registry.inbox(
        InboxQuery(requester=call.session_key),
        at=await call.services.work.log.head(),
        after=position,
        limit=limit,
    )


def is_unread(run: Run) -> bool:
    """Return True if the report of a run is in an inbox and not acknowledged."""
    inbox = run.inbox
    return inbox is not None and inbox.disposition == "inbox" and inbox.acknowledged_at is None


def inbox_position(run: Run) -> int:
    """Return the inbox position of a run's report, or 0 if it has none."""
    return run.inbox.position if run.inbox is not None else 0


async def newest_of_session(call: McpCall, run: Run) -> Run:
    """Return the newest run of the session of a run."""
    if run.continued_by is None or run.child_session_key is None:
        return run
    session = await call.services.work.registry.session(run.child_session_key)
    if session is None or session.run_id is None:
        return run
    return await call.services.work.run(session.run_id)


def is_over(run: Run) -> bool:
    """Return True if a run was refused, or has reported and no other run continues it."""
    return run.stage in SETTLED and not run.queue and run.continued_by is None


@dataclass(frozen=True, slots=True)
class WaitResult:
    """Result of a wait: the newest run of each session, split by whether it is over."""

    over: tuple[Run, ...]
    open: tuple[Run, ...]


async def wait_for_runs(
    call: McpCall, runs: Sequence[Run], seconds: float, *, enough: int | None = None
) -> WaitResult:
    """Wait until enough of the runs are over. The runs continue if the wait ends first.

    A run that is continued by another counts as that one. Progress is reported to the caller.

    Args:
        call: The call that waits.
        runs: The runs to wait for.
        seconds: Maximum time to wait.
        enough: Number of runs that must be over. Default: all.
    """
    enough = len(runs) if enough is None else min(enough, len(runs))
    services, deadline = call.services, time.monotonic() + seconds
    reports, reported_at, counted = 0, 0.0, -1
    newest = list(runs)
    while True:
        position = services.tail.position
        newest = [await _present(call, run) for run in newest]
        over = tuple(run for run in newest if is_over(run))
        if len(over) >= enough or time.monotonic() >= deadline or services.closing():
            return WaitResult(over, tuple(run for run in newest if not is_over(run)))
        if len(over) != counted or time.monotonic() - reported_at >= STEP_SECONDS_MAX:
            reports, reported_at, counted = reports + 1, time.monotonic(), len(over)
            await call.report(reports, f"{len(over)} of {len(newest)} sub-agents are done")
        await wait_for_growth(
            services,
            {run.run_id for run in newest},
            after=position,
            deadline=min(deadline, reported_at + STEP_SECONDS_MAX),
            types=_TURNING_POINTS,
        )


async def _present(call: McpCall, run: Run) -> Run:
    """Return the newest run of the session, from the cache of followed runs if possible."""
    known = call.services.tail.newest(run.run_id)
    if known is None:
        known = run if is_over(run) else await call.services.work.run(run.run_id)
    return await newest_of_session(call, known)

"""The sub-agents of a session, as the tools number and name them, and how they are waited for."""

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
"""So many of the newest runs of a session are looked through for those that ended lately, and for
reports that were not acknowledged."""

_REPORTED = ("announced", "archived")
_CREATED = ("session-created", "queued", "started", "ended", *_REPORTED)

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
    newest = await _newest_runs(call, _CREATED)
    runs = {one.run_id: one for one in (*await active_runs(call), *newest)}
    summaries = await run_summaries(tuple(runs.values()), services.work.contents, services.run_bars)
    known = subagents_of([members_of(one) for one in summaries], services.work.log.now(), recent)
    active = [await _with_pending(call, one) for one in known.active]
    return Subagents(tuple(active), known.recent)


async def _newest_runs(call: McpCall, stages: tuple[str, ...]) -> Sequence[Run]:
    return await call.services.work.registry.runs(
        RunQuery.where(requester=call.session_key, stage=stages),
        at=await call.services.work.log.head(),
        limit=RUNS_LISTED_MAX,
    )


async def _with_pending(call: McpCall, one: Subagent) -> Subagent:
    if one.run.get("stage") != "ended":
        return one
    key = str(one.run["childSessionKey"])
    pending, _ = await call.services.work.registry.descendants(key)
    return replace(one, pending=pending)


async def find_target(call: McpCall, name: str, recent: timedelta = RECENT) -> Subagent:
    """The sub-agent that a name means: a whole run id or session key goes before what is listed,
    and means the session in which that run went on. `ToolInputError` for none, or several."""
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
    """The sub-agents of which something is to come: that are at work, or have ended and are not
    announced yet."""
    # In this order: one that ends meanwhile is found by the second look.
    active = await active_runs(call)
    ended = await _newest_runs(call, ("ended",))
    runs = {one.run_id: one for one in (*active, *ended) if not is_over(one)}
    return list(runs.values())


async def unread_reports(call: McpCall) -> list[Run]:
    """The runs whose reports lie in the inbox of the session and were not acknowledged, among the
    newest, in the order of the inbox."""
    unread = [one for one in await _newest_runs(call, _REPORTED) if is_unread(one)]
    return sorted(unread, key=inbox_position)


async def reports_behind(call: McpCall, position: int, limit: int) -> Sequence[Run]:
    """The runs whose reports stand behind a position of the inbox, in its order."""
    return await call.services.work.registry.inbox(
        InboxQuery(requester=call.session_key),
        at=await call.services.work.log.head(),
        after=position,
        limit=limit,
    )


def is_unread(run: Run) -> bool:
    """Whether what a run reports lies in an inbox and was not acknowledged."""
    inbox = run.inbox
    return inbox is not None and inbox.disposition == "inbox" and inbox.acknowledged_at is None


def inbox_position(run: Run) -> int:
    """Where its report stands in the inbox; 0 without one."""
    return run.inbox.position if run.inbox is not None else 0


async def newest_of_session(call: McpCall, run: Run) -> Run:
    """The run in which the session of a run goes on, however many have been in between."""
    if run.continued_by is None or run.child_session_key is None:
        return run
    session = await call.services.work.registry.session(run.child_session_key)
    if session is None or session.run_id is None:
        return run
    return await call.services.work.run(session.run_id)


def is_over(run: Run) -> bool:
    """Whether nothing more comes of a run by itself: it was refused, or has reported."""
    return run.stage in SETTLED and not run.queue and run.continued_by is None


@dataclass(frozen=True, slots=True)
class Awaited:
    """What a wait has come to: the newest runs of the sessions that were waited for."""

    over: tuple[Run, ...]
    open: tuple[Run, ...]


async def wait_for_runs(
    call: McpCall, runs: Sequence[Run], seconds: float, *, enough: int | None = None
) -> Awaited:
    """Wait until so many of the runs (without a number all of them), or what goes on behind them,
    are over, so many seconds at most. The caller is told how far that is; when it gives up, the
    runs go on."""
    enough = len(runs) if enough is None else min(enough, len(runs))
    services, deadline = call.services, time.monotonic() + seconds
    told, told_at, counted = 0, 0.0, -1
    now = list(runs)
    while True:
        position = services.tail.position
        now = [await _present(call, one) for one in now]
        over = tuple(one for one in now if is_over(one))
        if len(over) >= enough or time.monotonic() >= deadline or services.closing():
            return Awaited(over, tuple(one for one in now if not is_over(one)))
        if len(over) != counted or time.monotonic() - told_at >= STEP_SECONDS_MAX:
            told, told_at, counted = told + 1, time.monotonic(), len(over)
            await call.report(told, f"{len(over)} of {len(now)} sub-agents are done")
        await wait_for_growth(
            services,
            {one.run_id for one in now},
            after=position,
            deadline=min(deadline, told_at + STEP_SECONDS_MAX),
            types=_TURNING_POINTS,
        )


async def _present(call: McpCall, run: Run) -> Run:
    """The run as it is now: as it was followed here, or as it is on record."""
    known = call.services.tail.newest(run.run_id)
    if known is None:
        known = run if is_over(run) else await call.services.work.run(run.run_id)
    return await newest_of_session(call, known)

"""Summary of the events between two moments, and of the runs that are live at the second."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from pydantic import Field

from application.ports.registry import InboxQuery, LaneState, RunCondition, RunQuery
from application.ports.run_bars import RunBar
from application.queries.access import Caller
from application.queries.as_of import AsOf, resolve_as_of
from application.queries.command import Column, Command, Option
from application.queries.configuration import configuration_in_force
from application.queries.errors import invalid_value
from application.queries.operation import LogPart, Read, operation
from application.queries.paging import Cursor
from application.queries.run_filter import (
    IS_OVER,
    TEXT_CHARACTERS_MAX,
    TREE_DESCRIPTION,
    AgentId,
    RunFilter,
    live_runs,
    narrow_to_tree,
    run_query,
)
from application.queries.runs import running_so_far
from application.queries.search.failures import failures_by_cause
from application.queries.search.run_totals import run_totals, usage_by_agent
from application.queries.services import QueryServices
from application.queries.views.run import status_of_stage
from application.queries.views.summary import (
    ActivatedRevisionView,
    LiveRunsView,
    SummaryView,
    WaitReason,
    WaitView,
)
from application.queries.views.view import Answer
from domain.event_types import ConfigurationActivated
from domain.run.state import Run
from domain.values.moments import MOMENT_FORMS
from domain.values.record import CONFIG_STREAM

RANGE_DEFAULT = timedelta(hours=24)
REVISIONS_MAX = 50
LIVE_RUNS_MAX = 5_000
PARKED_MAX = 500
RUNS_SHOWN_MAX = 5


class GetSummary(LogPart, Read):
    """Parameters of `get_summary`."""

    begin: str | None = Field(
        None,
        alias="from",
        max_length=LogPart.model_fields["begin"].metadata[0].max_length,
        description=(
            f"Start of the range, exclusive: {MOMENT_FORMS}. Default: 24 hours before its end."
        ),
        examples=["12h"],
    )
    tree: str | None = Field(None, max_length=TEXT_CHARACTERS_MAX, description=TREE_DESCRIPTION)
    agent_ids: tuple[AgentId, ...] = Field(
        (), alias="agentId", description="Only runs of this agent, after any override (repeatable)."
    )


class _Range(NamedTuple):
    after: int
    until: int
    from_at: datetime | None
    to_at: datetime | None


@operation(
    "GET",
    "/v1/summary",
    name="getSummary",
    tag="runs",
    scope="read",
    summary="Summarize what happened between two moments",
    description=(
        "Returns the numbers of runs that were spawned, ended and refused after `from`, up to `to`;"
        " the tokens and cost of those that ended, and their failures by cause; the configuration"
        " revisions that were activated; and the numbers of runs that are live at `to`."
        " A run that was requested before the range counts in `ended` if it ended in it. The cost"
        " does not depend on the size of the log: of the runs requested in the range and those"
        " live at its start, up to 10,000 are counted, the newest (5,000 for a token that may not"
        " see all sessions). `countedTo` of `spawned` and `ended` is then the position down to"
        " which runs were counted. Runs that ended without an error text have the cause"
        " `no error text`. For a token without scope `content`, causes come from the previews of"
        " errors that lists show."
    ),
    errors=("not_found",),
    command=Command(
        "summary",
        "Summarize what happened since a moment.",
        options={
            "from": Option(flag="--since", metavar="TIME", means="moment"),
            "to": Option(flag="--until", metavar="TIME", means="moment"),
        },
        fields=(
            Column("from", "fromAt", "instant"),
            Column("to", "toAt", "instant"),
            Column("spawned", "spawned.runs"),
            Column("ended", "ended.statuses", "assignments"),
            Column("refused by", "ended.rules", "assignments"),
            Column("tokens in", "ended.inputTokens"),
            Column("tokens out", "ended.outputTokens"),
            Column("cost in USD", "ended.estimatedCostUsd"),
            Column("running", "live.running"),
            Column("queued", "live.queued"),
            Column("waiting", "live.waiting"),
            Column("parked", "live.parkedDeliveries"),
        ),
    ),
)
async def get_summary(
    services: QueryServices, caller: Caller, query: GetSummary
) -> Answer[SummaryView]:
    """Return the summary of a range of the log."""
    end = await resolve_as_of(services, caller, query.end, pointer="/query/to")
    limits = await _range(services, caller, query, end)
    at = limits.until
    place = Cursor.first(at, services.work.log.now())
    criteria = RunFilter(tree=query.tree, agent_ids=query.agent_ids)
    runs = await run_query(services, caller, criteria, place)
    runs = await narrow_to_tree(services.work.registry, caller, runs)
    live_before = await live_runs(services, limits.after)
    spawned = _also(runs, RunCondition("created_position", ">", limits.after))
    ended = _also(runs, RunCondition("over_position", ">", live_before), IS_OVER)
    search, access = services.run_search, services.access
    running = await running_so_far(services, caller, runs, place, moment=end)
    begun = [run for run in running if run.created_position > limits.after]
    spawned_totals, ended_totals, (failures, further), revisions, live = await asyncio.gather(
        run_totals(search, access, caller, spawned, None, at, running=begun),
        run_totals(search, access, caller, ended, None, at),
        failures_by_cause(search, access, caller, ended, at),
        _revisions(services, caller, limits),
        _live(services, caller, runs, at, running),
    )
    view = SummaryView(
        **limits._asdict(),
        spawned=spawned_totals,
        ended=ended_totals,
        failures=failures,
        further_causes=further,
        revisions=revisions,
        live=live,
    )
    return Answer(view, at)


def _also(query: RunQuery, *conditions: RunCondition) -> RunQuery:
    return RunQuery((*query.conditions, *conditions))


async def _range(services: QueryServices, caller: Caller, query: GetSummary, last: AsOf) -> _Range:
    """Return the positions and instants of the range that ends at `last`.

    Raises:
        QueryError: A moment is invalid, or the range ends before it begins.
    """
    log, registry = services.work.log, services.work.registry
    to_at = last.instant or (log.now() if last.now else await log.recorded_at(last.position))
    if query.begin is None:
        from_at = to_at - RANGE_DEFAULT if to_at is not None else None
        after = await registry.position_at(from_at) if from_at is not None else 0
        return _Range(min(after, last.position), last.position, from_at, to_at)
    first = await resolve_as_of(services, caller, query.begin, pointer="/query/from")
    if first.position > last.position:
        raise invalid_value(
            "/query/from",
            f"is pos:{first.position}, which is after the end of the range, pos:{last.position}",
        )
    from_at = first.instant or await log.recorded_at(first.position)
    return _Range(first.position, last.position, from_at, to_at)


async def _revisions(
    services: QueryServices, caller: Caller, limits: _Range
) -> list[ActivatedRevisionView] | None:
    if not caller.sees_everything:
        return None
    counts = await services.event_counts.up_to([limits.after, limits.until])
    # Revisions are numbered from 1, so their count is the number of the newest.
    before, last = (tally.get("ConfigurationActivated", 0) for tally in counts)
    if last == before:
        return []
    found = await services.work.log.newest_of_stream(
        CONFIG_STREAM, version_max=last, limit=min(last - before, REVISIONS_MAX)
    )
    views = []
    for recorded in found:
        assert isinstance(recorded.event, ConfigurationActivated)
        views.append(
            ActivatedRevisionView.from_source(
                recorded.event,
                position=recorded.envelope.position,
                activated_at=recorded.envelope.recorded_at,
            )
        )
    return views


async def _live(
    services: QueryServices,
    caller: Caller,
    query: RunQuery,
    at: int,
    running: Sequence[Run],
) -> LiveRunsView:
    registry = services.work.registry
    bars, lanes, configuration, parked = await asyncio.gather(
        services.run_bars.overlapping(query, after=at, until=at, at=at, limit=LIVE_RUNS_MAX + 1),
        registry.lanes(at=at),
        configuration_in_force(services.work, at),
        registry.inbox(InboxQuery(is_parked=True), at=at, after=0, limit=PARKED_MAX + 1),
    )
    width = configuration.subagent_defaults.max_concurrent if configuration is not None else None
    known: dict[str, bool] = {}
    by_status = defaultdict[str, list[RunBar]](list)
    for bar in bars[:LIVE_RUNS_MAX]:
        if await services.access.covers_child(caller, bar.run_id, bar.requester_session_key, known):
            status = status_of_stage(bar.stage, bar.outcome, waits=bar.waits)
            by_status[status].append(bar)
    root, agents = query.value_of("root"), _agents(query)
    deliveries = []
    for run in parked[:PARKED_MAX]:
        matches = root in (None, run.requester.root_session_key) and (
            not agents or run.agent_id in agents
        )
        if matches and await services.access.covers_run(caller, run, known):
            deliveries.append(
                sum(delivery.phase == "parked" for delivery in run.effects_of("webhook"))
            )
    runs_cut, parked_cut = len(bars) > LIVE_RUNS_MAX, len(parked) > PARKED_MAX
    return LiveRunsView(
        **{
            status: len(by_status[status])
            for status in ("preparing", "waiting", "queued", "running")
        },
        waits=_waits(by_status["waiting"], by_status["queued"], lanes, width),
        parked_announcements=len(deliveries),
        parked_deliveries=sum(deliveries),
        usage_by_agent=usage_by_agent(running),
        running_not_summed=max(0, len(by_status["running"]) - len(running)),
        cut=runs_cut or parked_cut,
        runs_cut=runs_cut,
        parked_cut=parked_cut,
    )


def _agents(query: RunQuery) -> tuple[str, ...]:
    return next(
        (condition.value for condition in query.conditions if condition.column == "agent_id"), ()
    )


def _waits(
    waiting: Sequence[RunBar],
    queued: Sequence[RunBar],
    lanes: Sequence[LaneState],
    width: int | None,
) -> list[WaitView]:
    """Group the waiting runs by reason, the largest group first. Both lists are newest first."""
    lane_of = {place.run_id: lane for lane in lanes for place in lane.queued}
    groups = defaultdict[tuple[WaitReason, str | None, int | None], list[UUID]](list)
    for bar in waiting:
        groups["runs", None, None].append(bar.run_id)
    for bar in queued:
        lane = lane_of.get(bar.run_id)
        is_full = lane is not None and (width is None or len(lane.running) >= width)
        reason: WaitReason = "slot" if is_full else "claim"
        place = (lane.lane, lane.depth) if lane is not None else (None, None)
        groups[(reason, *place)].append(bar.run_id)
    return [
        WaitView(
            reason=reason,
            lane=lane_name,
            depth=depth,
            runs=len(run_ids),
            run_ids=run_ids[:RUNS_SHOWN_MAX],
        )
        for (reason, lane_name, depth), run_ids in sorted(
            groups.items(), key=lambda item: -len(item[1])
        )
    ]

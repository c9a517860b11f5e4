"""Totals of the runs that match a query: by status, agent and rule."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, date
from decimal import Decimal
from typing import Any, TypeVar

from application.ports.registry import RunQuery
from application.ports.run_bars import RunDetails
from application.ports.run_search import CountedRuns, RunCount, RunSearch, RunWords, ScanWindow
from application.queries.access import Access, Caller
from application.queries.search.run_words import WORDS_EXAMINED_MAX
from application.queries.views.run import status_of_stage
from application.queries.views.run_totals import AgentUsageView, DailyUsageView, RunTotalsView
from domain.run.facts import Usage
from domain.run.state import Run

COUNTED_MAX = 10_000
COUNTED_OF_OTHERS_MAX = 5_000
"""Limit for callers that see only some runs, because the access to each requester is checked."""
AGENTS_MAX = 100
DAYS_MAX = 200
_Group = TypeVar("_Group", str, tuple[date, str])


class UsageSum:
    """Sum of runs, tokens and cost."""

    def __init__(self) -> None:
        self.runs = self.input_tokens = self.output_tokens = 0
        self.cost_usd: Decimal | None = None
        self.models, self.unpriced_models = set[str](), set[str]()

    def add(self, count: "RunCount | RunDetails | UsageSum") -> None:
        self.runs += count.runs
        self.input_tokens += count.input_tokens or 0
        self.output_tokens += count.output_tokens or 0
        if count.cost_usd is not None:
            self.cost_usd = (self.cost_usd or Decimal()) + count.cost_usd
        self.models |= count.models
        self.unpriced_models |= count.unpriced_models

    def add_usage(self, usage: Usage) -> None:
        """Add the tokens and cost of a run that is counted already."""
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        for share in usage.models:
            name = share.model or ""
            self.models.add(name)
            if share.cost_usd is None:
                self.unpriced_models.add(name)
            else:
                self.cost_usd = (self.cost_usd or Decimal()) + Decimal(str(share.cost_usd))

    @property
    def is_empty(self) -> bool:
        return not (self.input_tokens or self.output_tokens or self.cost_usd)

    @property
    def fields(self) -> dict[str, Any]:
        cost = None if self.cost_usd is None else float(self.cost_usd)
        return {
            "runs": self.runs,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "estimated_cost_usd": cost,
            "models": len(self.models),
            "unpriced_models": len(self.unpriced_models),
        }


def runs_counted_max(caller: Caller, words: RunWords | None) -> int:
    """Return the maximum number of runs that are scanned for a caller and words."""
    if words is not None:
        return WORDS_EXAMINED_MAX
    return COUNTED_MAX if caller.sees_everything else COUNTED_OF_OTHERS_MAX


async def run_totals(
    search: RunSearch,
    access: Access,
    caller: Caller,
    query: RunQuery,
    words: RunWords | None,
    at: int,
    running: Sequence[Run] = (),
) -> RunTotalsView:
    """Return the totals of the runs that the caller may see, limited to the newest.

    Args:
        running: Matching runs that were running, with their tokens by then: these are summed too.
    """
    found = await search.count(
        query,
        words,
        ScanWindow(at, runs_counted_max(caller, words)),
        by_requester=not caller.sees_everything,
        own=caller.run_id,
    )
    return await _totals_of(access, caller, found, running)


async def totals_of_trees(
    search: RunSearch,
    access: Access,
    caller: Caller,
    query: RunQuery,
    roots: Sequence[str],
    at: int,
    running: Sequence[Run] = (),
) -> list[RunTotalsView]:
    """Return the totals of the runs of each tree that the caller may see, limited to its newest.

    Args:
        running: As for `run_totals`, of all these trees.
    """
    counted = await search.count_trees(
        query,
        roots,
        ScanWindow(at, runs_counted_max(caller, None)),
        by_requester=not caller.sees_everything,
        own=caller.run_id,
    )
    by_root = defaultdict[str, list[Run]](list)
    for run in running:
        by_root[run.requester.root_session_key].append(run)
    return [
        await _totals_of(access, caller, found, by_root[root])
        for root, found in zip(roots, counted, strict=True)
    ]


async def _totals_of(
    access: Access, caller: Caller, found: CountedRuns, running: Sequence[Run]
) -> RunTotalsView:
    statuses, agents, rules = Counter[str](), Counter[str](), Counter[str]()
    of_agent = defaultdict[str, Counter[str]](Counter)
    whole, by_day = UsageSum(), defaultdict[tuple[date, str], UsageSum](UsageSum)
    by_agent = defaultdict[str, UsageSum](UsageSum)
    known: dict[str, bool] = {}
    for count in found.counts:
        if count.requester is not None:
            if count.requester not in known:
                known[count.requester] = await access.covers_session(caller, count.requester)
            if not known[count.requester]:
                continue
        whole.add(count)
        status = status_of_stage(count.stage, count.outcome, waits=count.waits)
        statuses[status] += count.runs
        if count.agent_id is not None:
            agents[count.agent_id] += count.runs
            of_agent[count.agent_id][status] += count.runs
            by_agent[count.agent_id].add(count)
            by_day[count.day, count.agent_id].add(count)
        if count.rule is not None:
            rules[count.rule] += count.runs
    summed = 0
    for run in running:
        is_counted = found.counted_to is None or run.created_position >= found.counted_to
        summed += is_counted
        if is_counted and run.usage is not None and run.agent_id is not None:
            day = run.created_at.astimezone(UTC).date()
            for usage in (whole, by_agent[run.agent_id], by_day[day, run.agent_id]):
                usage.add_usage(run.usage)
    most = _most_first(agents, AGENTS_MAX)
    return RunTotalsView(
        **whole.fields,
        statuses=_most_first(statuses),
        agents=most,
        statuses_by_agent={agent: _most_first(of_agent[agent]) for agent in most},
        rules=_most_first(rules),
        usage_by_agent=_agent_views(by_agent),
        usage_by_day=[
            DailyUsageView(day=day, agent_id=agent, **usage.fields)
            for (day, agent), usage in whole_days(by_day)
        ],
        running_not_summed=max(0, statuses["running"] - summed),
        counted_to=found.counted_to,
    )


def usage_by_agent(runs: Sequence[Run]) -> list[AgentUsageView]:
    """Return the tokens and cost of runs by agent, the most expensive first."""
    by_agent = defaultdict[str, UsageSum](UsageSum)
    for run in runs:
        if run.usage is not None and run.agent_id is not None:
            by_agent[run.agent_id].runs += 1
            by_agent[run.agent_id].add_usage(run.usage)
    return _agent_views(by_agent)


def details_with_usage(details: RunDetails, usage: Usage | None) -> RunDetails:
    """Return the details of a run with its tokens and cost; unchanged if it has used none."""
    if usage is None:
        return details
    used = UsageSum()
    used.add_usage(usage)
    return details._replace(
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cost_usd=used.cost_usd,
        models=frozenset(used.models),
        unpriced_models=frozenset(used.unpriced_models),
    )


def _agent_views(by_agent: Mapping[str, UsageSum]) -> list[AgentUsageView]:
    return [
        AgentUsageView(agent_id=agent, **usage.fields)
        for agent, usage in _dearest_first(by_agent)[:AGENTS_MAX]
    ]


def whole_days(
    by_day: Mapping[tuple[date, str], UsageSum],
) -> list[tuple[tuple[date, str], UsageSum]]:
    """Return the newest usages by day and agent. A day of which agents would be cut off is left
    out, unless it is the only one."""
    newest = sorted(_dearest_first(by_day), key=lambda item: item[0][0], reverse=True)
    kept, left = newest[:DAYS_MAX], newest[DAYS_MAX:]
    if not left:
        return kept
    (cut, _), _ = left[0]
    return [item for item in kept if item[0][0] != cut] or kept


def _most_first(numbers: Counter[str], limit: int | None = None) -> dict[str, int]:
    """Return the highest counts first, ties by name, so that the order is stable."""
    return dict(sorted(numbers.items(), key=lambda item: (-item[1], item[0]))[:limit])


def _dearest_first(usages: Mapping[_Group, UsageSum]) -> list[tuple[_Group, UsageSum]]:
    return sorted(
        (item for item in usages.items() if not item[1].is_empty),
        key=lambda item: (-(item[1].cost_usd or 0), -item[1].input_tokens, item[0]),
    )

"""Totals of the runs that match a query: by status, agent and rule."""

from collections import Counter

from application.ports.registry import RunQuery
from application.ports.run_search import RunSearch, RunWords, ScanWindow
from application.queries.access import Access, Caller
from application.queries.search.run_words import WORDS_EXAMINED_MAX
from application.queries.views.run import status_of_stage
from application.queries.views.run_totals import RunTotalsView

COUNTED_MAX = 10_000
COUNTED_OF_OTHERS_MAX = 5_000
"""Limit for callers that see only some runs, because the access to each requester is checked."""
AGENTS_MAX = 100


async def run_totals(
    search: RunSearch,
    access: Access,
    caller: Caller,
    query: RunQuery,
    words: RunWords | None,
    at: int,
) -> RunTotalsView:
    """Return the totals of the runs that the caller may see, limited to the newest."""
    runs_max = COUNTED_MAX if caller.sees_everything else COUNTED_OF_OTHERS_MAX
    if words is not None:
        runs_max = WORDS_EXAMINED_MAX
    found = await search.count(
        query,
        words,
        ScanWindow(at, runs_max),
        by_requester=not caller.sees_everything,
        own=caller.run_id,
    )
    statuses, agents, rules = Counter[str](), Counter[str](), Counter[str]()
    known: dict[str, bool] = {}
    for count in found.counts:
        if count.requester is not None:
            if count.requester not in known:
                known[count.requester] = await access.covers_session(caller, count.requester)
            if not known[count.requester]:
                continue
        statuses[status_of_stage(count.stage, count.outcome, waits=count.waits)] += count.runs
        if count.agent_id is not None:
            agents[count.agent_id] += count.runs
        if count.rule is not None:
            rules[count.rule] += count.runs
    return RunTotalsView(
        runs=statuses.total(),
        statuses=_most_first(statuses),
        agents=_most_first(agents, AGENTS_MAX),
        rules=_most_first(rules),
        counted_to=found.counted_to,
    )


def _most_first(numbers: Counter[str], limit: int | None = None) -> dict[str, int]:
    """Return the highest counts first, ties by name, so that the order is stable."""
    return dict(sorted(numbers.items(), key=lambda item: (-item[1], item[0]))[:limit])

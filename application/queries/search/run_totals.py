"""How many runs a question leaves, by status, by agent and by rule."""

from collections import Counter

from application.ports.registry import RunQuery
from application.ports.run_search import Examined, RunSearch, RunWords
from application.queries.access import Access, Caller
from application.queries.search.run_words import WORDS_EXAMINED_MAX
from application.queries.views.run import status_of_stage
from application.queries.views.run_totals import RunTotalsView

COUNTED_MAX = 10_000
COUNTED_OF_OTHERS_MAX = 5_000
"""For who sees a part of them: whose each is has to be looked up."""
AGENTS_MAX = 100


async def run_totals(
    search: RunSearch,
    access: Access,
    caller: Caller,
    query: RunQuery,
    words: RunWords | None,
    at: int,
) -> RunTotalsView:
    """The numbers of the runs that the caller may see, the newest of them when there are many."""
    runs_max = COUNTED_MAX if caller.sees_everything else COUNTED_OF_OTHERS_MAX
    if words is not None:
        runs_max = WORDS_EXAMINED_MAX
    found = await search.count(
        query,
        words,
        Examined(at, runs_max),
        by_requester=not caller.sees_everything,
        own=caller.run_id,
    )
    statuses, agents, rules = Counter[str](), Counter[str](), Counter[str]()
    known: dict[str, bool] = {}
    for one in found.counts:
        if one.requester is not None:
            if one.requester not in known:
                known[one.requester] = await access.covers_session(caller, one.requester)
            if not known[one.requester]:
                continue
        statuses[status_of_stage(one.stage, one.outcome, waits=one.waits)] += one.runs
        if one.agent_id is not None:
            agents[one.agent_id] += one.runs
        if one.rule is not None:
            rules[one.rule] += one.runs
    return RunTotalsView(
        runs=statuses.total(),
        statuses=_most_first(statuses),
        agents=_most_first(agents, AGENTS_MAX),
        rules=_most_first(rules),
        counted_to=found.counted_to,
    )


def _most_first(numbers: Counter[str], limit: int | None = None) -> dict[str, int]:
    """In an order that is the same for the same numbers."""
    return dict(sorted(numbers.items(), key=lambda one: (-one[1], one[0]))[:limit])

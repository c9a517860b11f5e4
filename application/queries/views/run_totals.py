"""Totals of runs beside a list of them."""

from datetime import date

from application.queries.views.view import View


class UsageTotalsView(View):
    """A number of runs, with their tokens and estimated cost. A run that was running counts with
    its usage by then. `models` is the number of models that they used, and `unpricedModels` the
    number of those without a price in at least one of the runs. The cost does not include those
    tokens, and is null if nothing has a price."""

    runs: int
    input_tokens: int
    output_tokens: int
    estimated_cost_usd: float | None
    models: int
    unpriced_models: int


class AgentUsageView(UsageTotalsView):
    """Runs, tokens and cost of one agent."""

    agent_id: str


class DailyUsageView(AgentUsageView):
    """Runs, tokens and cost of one agent on one day. `day` is the UTC day on which the runs were
    created."""

    day: date


class RunTotalsView(UsageTotalsView):
    """The number of runs that match the filters, as of the first page and for this token: in all
    (`runs`), by status, by agent (the hundred with the most runs) and, for refused runs, by rule.
    Zero counts are omitted. `statusesByAgent` has the statuses of each of `agents`. A run that was
    refused because it named no valid agent counts for none. `countedTo` is null if all runs were
    counted; otherwise only the newest were, down to the one created at that position. Tokens and
    cost are summed over the same runs, without those of `runningNotSummed` running ones: all but
    the newest 500 and, in the past, those with many usage entries, because at most 10,000 are read.
    `usageByAgent` lists up to 100 agents, the most expensive first, and `usageByDay` up to 200 days
    of an agent, whole days, the newest first. Both omit agents without tokens and cost."""

    statuses: dict[str, int]
    agents: dict[str, int]
    statuses_by_agent: dict[str, dict[str, int]]
    rules: dict[str, int]
    usage_by_agent: list[AgentUsageView]
    usage_by_day: list[DailyUsageView]
    running_not_summed: int
    counted_to: int | None

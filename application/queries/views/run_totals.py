"""Totals of runs beside a list of them."""

from application.queries.views.view import View


class RunTotalsView(View):
    """The number of runs that match the filters, as of the first page and for this token: in all
    (`runs`), by status, by agent (the hundred with the most runs) and, for refused runs, by rule.
    Zero counts are omitted. `countedTo` is null if all runs were counted; otherwise only the newest
    were, down to the one created at that position."""

    runs: int
    statuses: dict[str, int]
    agents: dict[str, int]
    rules: dict[str, int]
    counted_to: int | None

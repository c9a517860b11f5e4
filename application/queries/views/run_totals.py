"""The numbers of runs beside a list of them."""

from application.queries.views.view import View


class RunTotalsView(View):
    """How many runs the filters leave, at that moment and for that token: all of them, by status,
    by agent (the hundred with the most) and, of those refused, by rule. What has none is left out.
    `countedTo` is null when all were counted; else only the newest were, down to the one created at
    that position."""

    runs: int
    statuses: dict[str, int]
    agents: dict[str, int]
    rules: dict[str, int]
    counted_to: int | None

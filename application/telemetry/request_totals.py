"""The requests that this process has answered since it started."""

from collections import Counter
from collections.abc import Mapping

from application.telemetry.duration_totals import REQUEST_SECONDS, DurationTotals

ROUTES_MAX = 200
"""A limit that the routes of this program do not reach: what is counted cannot grow with what
callers think of."""

OTHER = "other"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestTotals:
    """Counts by method, route and status, and the seconds until an answer begins by method and
    route: a stream of events may last for hours."""

    def __init__(self) -> None:
        self.answers = Counter[tuple[str, str, int]]()
        self._seconds: dict[tuple[str, str], DurationTotals] = {}

    def take(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """An answer has begun. `route` is a template; None for a path that no route has."""
        name = (method if method in _METHODS else OTHER, route or OTHER)
        totals = self._seconds.get(name)
        if totals is None:
            if len(self._seconds) >= ROUTES_MAX:
                name = (OTHER, OTHER)
            totals = self._seconds.setdefault(name, DurationTotals(REQUEST_SECONDS))
        totals.add(seconds)
        self.answers[*name, status] += 1

    @property
    def seconds(self) -> Mapping[tuple[str, str], DurationTotals]:
        """How long the answers to a method and route took to begin."""
        return self._seconds

"""In-process counters since the start, with bounded label sets.

Durations are counted in buckets, so that quantiles can be computed over several servers.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

from application.log.envelope import RecordedEvent
from domain.run.events import RunEnded, SpawnRefused
from domain.run.state import Run

REQUEST_SECONDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
"""Bucket bounds for request and append durations."""

RUN_SECONDS = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 10800.0)
"""Bucket bounds for run durations."""


class DurationTotals:
    """Durations by bucket. Each is counted in the first bucket whose bound it does not exceed."""

    __slots__ = ("_bounds", "_counts", "seconds")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self.seconds += seconds

    @property
    def count(self) -> int:
        return sum(self._counts)

    def up_to_bounds(self) -> list[tuple[float, int]]:
        """Return each bound with the number of durations up to it. The last bound is infinite."""
        found, so_far = list[tuple[float, int]](), 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            so_far += count
            found.append((bound, so_far))
        return found


class LogTotals:
    """Counters of the events that this process has committed, by type, outcome, rule and kind of
    token.

    Every server counts only its own events, so the sum over all servers is right.
    """

    def __init__(self) -> None:
        self.events = Counter[str]()
        self.outcomes = Counter[str]()
        self.rules = Counter[str]()
        self.tokens = Counter[str]()
        self.run_seconds = DurationTotals(RUN_SECONDS)
        self.append_seconds = DurationTotals(REQUEST_SECONDS)

    def take(self, events: Sequence[RecordedEvent], runs: Mapping[UUID, Run]) -> None:
        """Count events that this process has committed. `runs` are the runs after them."""
        for envelope, event in events:
            self.events[envelope.type] += 1
            if type(event) is RunEnded:
                run_id = envelope.provenance.run_id
                self._take_end(event, runs.get(run_id) if run_id is not None else None)
            elif type(event) is SpawnRefused:
                self.rules[event.rule] += 1

    def _take_end(self, event: RunEnded, run: Run | None) -> None:
        self.outcomes[event.outcome] += 1
        if event.usage is not None:
            self.tokens["input"] += event.usage.input_tokens
            self.tokens["output"] += event.usage.output_tokens
        if run is not None and run.runtime_ms is not None:
            self.run_seconds.add(run.runtime_ms / 1000)


ROUTES_MAX = 200
"""Limit of distinct routes. The real routes do not reach it; it keeps callers from growing the
counters."""

OTHER = "other"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestTotals:
    """Answered requests by method, route and status, and seconds until the answer began by method
    and route.

    The time to the end of an answer is not measured, because event streams may last for hours.
    """

    def __init__(self) -> None:
        self.answers = Counter[tuple[str, str, int]]()
        self._seconds: dict[tuple[str, str], DurationTotals] = {}

    def take(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count an answer that has begun. `route` is a template; None if no route matches the
        path."""
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
        """Return the time until answers began, by method and route."""
        return self._seconds

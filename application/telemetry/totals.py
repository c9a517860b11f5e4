"""What this process has counted since it started: in memory, by what there is only so much of.

Durations are counted in buckets, so that a quantile can be told of many servers.
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
"""Bounds for what a caller waits for."""

RUN_SECONDS = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 10800.0)
"""Bounds for what a child works at."""


class DurationTotals:
    """Durations by bucket; one is counted in the first whose bound it does not pass."""

    __slots__ = ("_bounds", "_counts", "seconds")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """One more."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self.seconds += seconds

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self._counts)

    def up_to_bounds(self) -> list[tuple[float, int]]:
        """Each bound, and how many did not pass it; the last one is infinite."""
        found, so_far = list[tuple[float, int]](), 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            so_far += count
            found.append((bound, so_far))
        return found


class LogTotals:
    """What this process has recorded, counted as it is committed, by types, outcomes, rules and
    kinds of tokens.

    Several servers of one log count each what it has recorded itself, so that their sum is right.
    """

    def __init__(self) -> None:
        self.events = Counter[str]()
        self.outcomes = Counter[str]()
        self.rules = Counter[str]()
        self.tokens = Counter[str]()
        self.run_seconds = DurationTotals(RUN_SECONDS)
        self.append_seconds = DurationTotals(REQUEST_SECONDS)

    def take(self, events: Sequence[RecordedEvent], runs: Mapping[UUID, Run]) -> None:
        """Events that this process has committed, and the runs as they are after them."""
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
"""A limit that the routes of this program do not reach: what is counted cannot grow with what
callers think of."""

OTHER = "other"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestTotals:
    """The requests that were answered, by method, route and status, and the seconds until an answer
    began by method and route: a stream of events may last for hours."""

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

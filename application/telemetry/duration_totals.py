"""How long something took: counted in buckets, so that a quantile can be told of many servers."""

from bisect import bisect_left
from collections.abc import Sequence

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

"""Metrics of a server: its counters, and counts of open work."""

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from application.concurrency.tasks import with_timeout
from application.log.event_log import LogUnavailableError
from application.ports.open_work import OpenWork, OpenWorkCounts
from application.telemetry.span_export import SpanTotals
from application.telemetry.totals import LogTotals, RequestTotals

COUNT_SECONDS_MAX = 2.0
"""Timeout of the database query, so that monitoring learns that the database does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """Sources of the metrics, assembled by the composition root.

    Attributes:
        tail: Returns the last position followed.
        lane_width: Returns the lane width of the active configuration.
        spans: None if spans are not exported.
    """

    log_id: UUID
    totals: LogTotals
    open_work: OpenWork
    tail: Callable[[], int]
    lane_width: Callable[[], int]
    spans: SpanTotals | None = None
    requests: RequestTotals = field(default_factory=RequestTotals)


@dataclass(frozen=True, slots=True)
class MeasurementSnapshot:
    """A snapshot of all metrics. `open` is None if the database does not answer."""

    of: Measurements
    open: OpenWorkCounts | None
    lane_width: int
    tail: int


async def measure(measurements: Measurements) -> MeasurementSnapshot:
    """Return a snapshot of all metrics."""
    try:
        counts = await with_timeout(measurements.open_work.count(), COUNT_SECONDS_MAX)
    except (TimeoutError, LogUnavailableError):
        counts = None
    # Read the tail last; otherwise it would seem to lag behind the counts.
    return MeasurementSnapshot(measurements, counts, measurements.lane_width(), measurements.tail())

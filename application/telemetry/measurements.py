"""What a server tells of itself when it is asked: counted here, and counted among the open rows."""

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from application.concurrency.tasks import with_timeout
from application.log.event_log import LogUnavailable
from application.ports.open_work import OpenWork, OpenWorkCounts
from application.telemetry.span_export import SpanTotals
from application.telemetry.totals import LogTotals, RequestTotals

COUNT_SECONDS_MAX = 2.0
"""How long the database may take: who watches it has to be told that it does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """Put together by the composition root. `lane_width` is by the active configuration, `tail`
    the last position that was followed; `spans` is None where none are sent."""

    log_id: UUID
    totals: LogTotals
    open_work: OpenWork
    tail: Callable[[], int]
    lane_width: Callable[[], int]
    spans: SpanTotals | None = None
    requests: RequestTotals = field(default_factory=RequestTotals)


@dataclass(frozen=True, slots=True)
class Measured:
    """All that is told at once. `open` is None while the database does not answer."""

    of: Measurements
    open: OpenWorkCounts | None
    lane_width: int
    tail: int


async def measure(measurements: Measurements) -> Measured:
    """What there is now."""
    try:
        counts = await with_timeout(measurements.open_work.count(), COUNT_SECONDS_MAX)
    except (TimeoutError, LogUnavailable):
        counts = None
    # The tail afterwards: read before, it would seem to be behind what came meanwhile.
    return Measured(measurements, counts, measurements.lane_width(), measurements.tail())

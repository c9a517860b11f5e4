"""Measurements in the text format of Prometheus.

The library that writes it is imported by the first request, so a server without scrapes does not
need it.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from application.log.envelope import WRITER_VERSION
from application.telemetry.measurements import MeasurementSnapshot
from application.telemetry.span_export import SpanTotals
from application.telemetry.totals import DurationTotals, LogTotals, RequestTotals

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

Labels = tuple[str, ...]
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics_text(measured: MeasurementSnapshot) -> bytes:
    """Return all measurements, and those of the process from the operating system."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_MeasuredCollector(measured))
    return generate_latest(registry) + generate_latest(_process_registry())


@cache
def _process_registry() -> "CollectorRegistry":
    from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return registry


class _MeasuredCollector:
    def __init__(self, measured: MeasurementSnapshot) -> None:
        self._measured = measured

    def collect(self) -> "Iterator[Metric]":
        """Yield every metric family."""
        measured = self._measured
        log_id = str(measured.of.log_id)
        yield _gauge(
            "build_info",
            "Release, and log that it serves.",
            ("version", "log"),
            {(WRITER_VERSION, log_id): 1},
        )
        yield from _of_log(measured.of.totals)
        yield from _of_requests(measured.of.requests)
        yield from _of_open_work(measured)
        if measured.of.spans is not None:
            yield _of_spans(measured.of.spans)

    def describe(self) -> "Iterable[Metric]":
        """Return nothing: no other collector is in this registry."""
        return ()


def _of_log(totals: LogTotals) -> "Iterator[Metric]":
    events = totals.events
    yield _counter(
        "events_appended", "Events recorded by this process.", ("type",), _by_label(events)
    )
    yield _counter(
        "spawns",
        "Spawns received by this process, and those that became a child.",
        ("step",),
        {("requested",): events["SpawnRequested"], ("accepted",): events["SessionCreated"]},
    )
    yield _counter("spawns_refused", "Refused spawns.", ("rule",), _by_label(totals.rules))
    yield _counter("runs_ended", "Finished runs.", ("outcome",), _by_label(totals.outcomes))
    yield _counter(
        "tokens", "Tokens reported by runtimes.", ("direction",), _by_label(totals.tokens)
    )
    yield _histogram(
        "run_seconds", "Time from the start to the end of runs.", (), {(): totals.run_seconds}
    )
    yield _histogram(
        "append_seconds",
        "Time from a command to its durable record, including the wait in the queue.",
        (),
        {(): totals.append_seconds},
    )


def _of_requests(requests: RequestTotals) -> "Iterator[Metric]":
    answers: dict[Labels, int] = {
        (method, route, str(status)): count
        for (method, route, status), count in list(requests.answers.items())
    }
    yield _counter("http_requests", "Answers.", ("method", "route", "status"), answers)
    yield _histogram(
        "http_request_seconds",
        "Time until the response began.",
        ("method", "route"),
        dict[Labels, DurationTotals](list(requests.seconds.items())),
    )


def _of_spans(totals: SpanTotals) -> "Metric":
    return _counter(
        "spans",
        "Spans sent, spans not accepted, and events without spans because of an error.",
        ("result",),
        {("sent",): totals.sent, ("failed",): totals.failed, ("dropped",): totals.dropped},
    )


def _of_open_work(measured: MeasurementSnapshot) -> "Iterator[Metric]":
    counts = measured.open
    yield _gauge("tail_position", "Position of the last event followed.", (), {(): measured.tail})
    yield _gauge("lane_width", "Number of slots of a lane.", (), {(): measured.lane_width})
    yield _gauge("database_up", "1 if the database responded.", (), {(): int(counts is not None)})
    if counts is None:
        return
    yield _gauge("log_position", "Position of the last event of the log.", (), {(): counts.head})
    yield _gauge(
        "tail_lag_events",
        "Events that this process has not followed yet.",
        (),
        {(): max(0, counts.head - measured.tail)},
    )
    yield _gauge(
        "lane_runs",
        "Runs of a lane with a slot, and waiting for one.",
        ("lane", "depth", "state"),
        {
            (lane.lane, str(lane.depth), state): number
            for lane in counts.lanes
            for state, number in (("running", lane.running), ("queued", lane.queued))
        },
    )
    due: dict[Labels, int] = {
        ("prepare",): 0,
        ("wait",): 0,
        ("run",): 0,
        ("continue",): 0,
        ("announce",): 0,
    }
    yield _gauge(
        "runs_due",
        "Runs by their next work.",
        ("work",),
        {**due, **_by_label(counts.due)},
    )
    yield _gauge(
        "runs_with_effects",
        "Runs with due effects: hooks, webhooks, undos.",
        (),
        {(): counts.effects},
    )
    yield _gauge(
        "parked_announcements",
        "Parked announcements, which are sent again only by a redrive.",
        (),
        {(): counts.parked},
    )


def _by_label(counts: Mapping[str, int]) -> dict[Labels, int]:
    # Copied in one step, since another thread keeps counting.
    return {(name,): count for name, count in list(counts.items())}


def _gauge(name: str, text: str, labels: Labels, values: Mapping[Labels, int]) -> "Metric":
    from prometheus_client.metrics_core import GaugeMetricFamily

    family = GaugeMetricFamily(f"spawnlog_{name}", text, labels=labels)
    for label_values, value in values.items():
        family.add_metric(label_values, value)
    return family


def _counter(name: str, text: str, labels: Labels, values: Mapping[Labels, int]) -> "Metric":
    from prometheus_client.metrics_core import CounterMetricFamily

    family = CounterMetricFamily(f"spawnlog_{name}", text, labels=labels)
    for label_values, value in values.items():
        family.add_metric(label_values, value)
    return family


def _histogram(
    name: str,
    text: str,
    labels: Labels,
    values: Mapping[Labels, DurationTotals],
) -> "Metric":
    from prometheus_client.metrics_core import HistogramMetricFamily

    family = HistogramMetricFamily(f"spawnlog_{name}", text, labels=labels)
    for label_values, totals in values.items():
        buckets = [
            ("+Inf" if bound == float("inf") else str(bound), count)
            for bound, count in totals.up_to_bounds()
        ]
        family.add_metric(label_values, buckets, totals.seconds)
    return family

"""Spans on their way to a receiver that is slow, fails, or is not there."""

import asyncio
from collections.abc import Sequence

from application.ports.spans import Span, SpansNotSent
from application.telemetry.span_export import QUEUE_EVENTS_MAX, SpanExport
from application.telemetry.trace_context import TraceContexts, span_id_of
from tests.support.builders.recorded_runs import RecordedRuns, recorded
from tests.support.builders.run_histories import an_announced_run
from tests.support.builders.storytelling import run_id

EVENTS = recorded(1, an_announced_run())
LOG = RecordedRuns(EVENTS)


class Receiver:
    """Keeps what it takes; it takes nothing while `fails`."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.spans: list[Span] = []
        self.is_closed = False

    async def send(self, spans: Sequence[Span]) -> None:
        if self.fails:
            raise SpansNotSent("it is away")
        self.spans += spans

    async def close(self) -> None:
        self.is_closed = True


def export(receiver: Receiver) -> SpanExport:
    return SpanExport(LOG.as_log(), TraceContexts(LOG.as_log()), receiver)


async def test_what_waits_is_sent_before_the_end() -> None:
    receiver = Receiver()
    exporting = export(receiver)
    exporting.start()
    exporting.take(EVENTS)
    await exporting.close()
    ids = [one.span_id for one in receiver.spans]
    assert span_id_of(run_id(1)) in ids
    assert span_id_of(run_id(1), "announcement") in ids
    assert exporting.totals.sent == len(ids)
    assert receiver.is_closed


async def test_what_is_not_taken_is_counted_and_not_sent_again() -> None:
    receiver = Receiver(fails=True)
    exporting = export(receiver)
    exporting.start()
    exporting.take(EVENTS)
    await exporting.close()
    assert receiver.spans == []
    assert exporting.totals.failed > 0
    assert exporting.totals.sent == 0


async def test_a_full_queue_drops_and_keeps_nobody_waiting() -> None:
    exporting = export(Receiver())
    for _ in range(QUEUE_EVENTS_MAX):
        exporting.take(EVENTS)
    # Each time there are two events at which spans are made.
    assert exporting.totals.dropped == QUEUE_EVENTS_MAX
    await asyncio.wait_for(exporting.close(), 1)

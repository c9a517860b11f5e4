"""Spans of runs: their traces, attributes, and export."""

import asyncio
from collections.abc import Sequence

import pytest

from application.log.envelope import RecordedEvent
from application.ports.spans import Span, SpanExportError
from application.telemetry.run_spans import READ_TYPES, span_of_announcement, spans_of_end
from application.telemetry.span_export import QUEUE_EVENTS_MAX, SpanExport
from application.telemetry.trace_context import (
    TraceContext,
    TraceContexts,
    read_traceparent,
    span_id_of,
)
from domain.run.facts import Usage
from domain.values.record import ContentRef
from tests.support.builders.continued_runs import message_received, planned
from tests.support.builders.recorded_runs import RecordedRuns, recorded
from tests.support.builders.run_histories import (
    a_claimed_run,
    an_announced_run,
    announced,
    claimed,
    created,
    ended,
    overridden,
    queued,
    refused,
    resolved,
    started,
)
from tests.support.builders.storytelling import at, plan, requested, requester, run_id

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"

BROUGHT = f"00-{TRACE}-{CALLER}-01"


def run(number: int, by: int | None = None, traceparent: str | None = None) -> list[RecordedEvent]:
    above = run_id(by) if by is not None else None
    begin = requested(run_id=run_id(number), requester=requester(run_id=above))
    return recorded(number, [begin], traceparent=traceparent)


def message(number: int, first: int, traceparent: str | None = None) -> list[RecordedEvent]:
    begin = message_received(
        run_id=run_id(number), opened_by=run_id(first), continues=run_id(first)
    )
    return recorded(number, [begin], traceparent=traceparent)


def contexts(*runs: list[RecordedEvent]) -> TraceContexts:
    return TraceContexts(RecordedRuns(*runs).as_log())


async def test_tree_is_in_trace_of_its_first_run() -> None:
    found = contexts(run(1), run(2, by=1), run(3, by=2))
    trace = run_id(1).int
    assert await found.of(run_id(3)) == TraceContext(trace, span_id_of(run_id(2)), False, True)
    assert await found.of(run_id(1)) == TraceContext(trace, None, False, True)


async def test_next_root_spawn_begins_a_trace() -> None:
    found = contexts(run(1), run(2))
    assert (await found.of(run_id(2))).trace_id == run_id(2).int


async def test_descendants_are_in_the_caller_trace() -> None:
    found = contexts(run(1), run(2, by=1, traceparent=BROUGHT), run(3, by=2))
    assert await found.of(run_id(2)) == TraceContext(int(TRACE, 16), int(CALLER, 16), True, True)
    below = TraceContext(int(TRACE, 16), span_id_of(run_id(2)), False, True)
    assert await found.of(run_id(3)) == below


async def test_unsampled_tree_has_no_spans() -> None:
    found = contexts(run(1, traceparent=f"00-{TRACE}-{CALLER}-00"), run(2, by=1))
    assert not (await found.of(run_id(2))).is_sampled


async def test_message_continues_the_session_trace() -> None:
    found = contexts(run(1), run(2, by=1), message(5, first=1), message(6, first=2))
    trace, top = run_id(1).int, span_id_of(run_id(1))
    assert await found.of(run_id(5)) == TraceContext(trace, top, False, True)
    assert await found.of(run_id(6)) == TraceContext(trace, top, False, True)
    own = contexts(run(1), message(5, first=1, traceparent=BROUGHT))
    assert (await own.of(run_id(5))).trace_id == int(TRACE, 16)


async def test_trace_is_read_once() -> None:
    log = RecordedRuns(run(1), run(2, by=1), run(3, by=2))
    found = TraceContexts(log.as_log())
    for number in (3, 2, 1, 3):
        await found.of(run_id(number))
    assert log.reads == 3


@pytest.mark.parametrize("text", [None, f"00-{'0' * 32}-{CALLER}-01", f"00-{TRACE}-{'0' * 16}-01"])
def test_invalid_traceparent_is_none(text: str | None) -> None:
    assert read_traceparent(text) is None


TOP = TraceContext(7, None, False, True)

BELOW = TraceContext(7, 70, False, True)

USAGE = Usage(input_tokens=10, output_tokens=2, total_tokens=12, cache_read_tokens=4, models=())


def test_run_has_a_span_for_each_stage() -> None:
    result = (
        *(requested(label="north"), resolved(), created(plan=plan(model_provider="p", model="m"))),
        *(queued(), claimed(), started(), ended(usage=USAGE)),
    )
    span, *stages = spans_of_end(recorded(1, result), BELOW)

    assert (span.trace_id, span.span_id, span.parent_id) == (7, span_id_of(run_id(1)), 70)
    assert (span.name, span.began, span.ended) == ("invoke_agent main", at(1), at(7))
    assert span.failure is None
    assert span.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.id": "main",
        "gen_ai.agent.name": "main",
        "gen_ai.conversation.id": str(run_id(1001)),
        "gen_ai.provider.name": "p",
        "gen_ai.request.model": "m",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 2,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "spawnlog.runtime": "scripted",
        "spawnlog.role": "orchestrator",
        "spawnlog.outcome": "success",
        "spawnlog.end.reason": "exit",
        "spawnlog.run.id": str(run_id(1)),
        "spawnlog.requester": "agent:main:main",
        "spawnlog.label": "north",
        "spawnlog.position": 107,
    }
    assert [(stage.name, stage.began, stage.ended) for stage in stages] == [
        ("prepare", at(1), at(3)),
        ("queue", at(4), at(5)),
        ("execute", at(6), at(7)),
    ]
    assert {stage.parent_id for stage in stages} == {span.span_id}
    assert len({stage.span_id for stage in (span, *stages)}) == 4


def test_unexecuted_run_ends_in_its_stage() -> None:
    result = (requested(), resolved(), overridden(), created(agent_id="steward"), queued())
    stopped = ended(outcome="stopped", reason="stopped", exit_code=None, result=None)
    span, *stages = spans_of_end(recorded(1, (*result, stopped)), TOP)
    assert span.name == "invoke_agent steward"
    assert span.failure is None
    assert [event.name for event in span.events] == ["scripts_resolved", "agent_overridden"]
    assert [(stage.name, stage.ended) for stage in stages] == [("prepare", at(4)), ("queue", at(6))]


def test_failure_is_named_by_outcome_or_rule() -> None:
    failed = ended(outcome="timeout", reason="timeout", exit_code=None)
    span, *_ = spans_of_end(recorded(1, (*a_claimed_run(), started(), failed)), TOP)
    assert span.failure == span.attributes["error.type"] == "timeout"
    span, stage = spans_of_end(recorded(1, (requested(), refused())), TOP)
    assert span.failure == span.attributes["spawnlog.rule"] == "model"
    assert (stage.name, stage.ended) == ("prepare", at(2))


def test_continued_run_is_linked_to_the_last() -> None:
    received = message_received()
    result = (received, planned(), queued(), claimed(), started(), ended())
    span, *_ = spans_of_end(recorded(2, result), BELOW)
    assert [link.span_id for link in span.links] == [span_id_of(received.continues)]
    # A session that a caller's trace opened is one trace as well.
    remote = BELOW._replace(is_parent_remote=True)
    assert len(spans_of_end(recorded(2, result), remote)[0].links) == 1
    brought = [*recorded(2, result)]
    envelope = brought[0].envelope
    provenance = envelope.provenance._replace(traceparent=f"00-{'7' * 32}-{'8' * 16}-01")
    brought[0] = brought[0]._replace(envelope=envelope._replace(provenance=provenance))
    assert spans_of_end(brought, remote)[0].links == (), "the run before is in another trace"


def test_announcement_is_linked_to_its_run() -> None:
    events = recorded(1, an_announced_run())
    read = [event for event in events if event.envelope.type in READ_TYPES]
    span = span_of_announcement(read, BELOW)
    assert span is not None
    assert (span.name, span.parent_id) == ("announce main", 70)
    assert [link.span_id for link in span.links] == [span_id_of(run_id(1))]
    recorded_at = [event.envelope.recorded_at for event in events]
    assert [span.began, span.ended] == recorded_at[-2:]
    top = span_of_announcement(read, TOP)
    assert top is not None
    assert top.parent_id == span_id_of(run_id(1))


def test_an_announcement_to_nobody_is_no_span() -> None:
    result = (*an_announced_run()[:-1], announced(disposition="not_required", text=None))
    assert span_of_announcement(recorded(1, result), TOP) is None


def test_no_attribute_refers_to_a_text() -> None:
    span, *stages = spans_of_end(recorded(1, (*a_claimed_run(), started(), ended())), TOP)
    values = [value for stage in (span, *stages) for value in stage.attributes.values()]
    assert all(isinstance(value, str | int) for value in values)
    assert not [value for value in values if isinstance(value, ContentRef)]


EVENTS = recorded(1, an_announced_run())

LOG = RecordedRuns(EVENTS)


class Receiver:
    """Receiver that keeps spans; it accepts none while `fails`."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.spans: list[Span] = []
        self.is_closed = False

    async def send(self, spans: Sequence[Span]) -> None:
        if self.fails:
            raise SpanExportError("it is away")
        self.spans += spans

    async def close(self) -> None:
        self.is_closed = True


def export(receiver: Receiver) -> SpanExport:
    return SpanExport(LOG.as_log(), TraceContexts(LOG.as_log()), receiver)


async def test_queued_spans_are_sent_at_close() -> None:
    receiver = Receiver()
    exporting = export(receiver)
    exporting.start()
    exporting.take(EVENTS)
    await exporting.close()
    ids = [span.span_id for span in receiver.spans]
    assert span_id_of(run_id(1)) in ids
    assert span_id_of(run_id(1), "announcement") in ids
    assert exporting.totals.sent == len(ids)
    assert receiver.is_closed


async def test_refused_spans_are_counted() -> None:
    receiver = Receiver(fails=True)
    exporting = export(receiver)
    exporting.start()
    exporting.take(EVENTS)
    await exporting.close()
    assert receiver.spans == []
    assert exporting.totals.failed > 0
    assert exporting.totals.sent == 0


async def test_full_queue_drops_spans() -> None:
    exporting = export(Receiver())
    for _ in range(QUEUE_EVENTS_MAX):
        exporting.take(EVENTS)
    # Each `take` has two events that make spans.
    assert exporting.totals.dropped == QUEUE_EVENTS_MAX
    await asyncio.wait_for(exporting.close(), 1)

"""The trace of a run: told from the record alone."""

import pytest

from application.log.envelope import RecordedEvent
from application.telemetry.trace_context import (
    TraceContext,
    TraceContexts,
    read_traceparent,
    span_id_of,
)
from tests.support.builders.continued_runs import message_received
from tests.support.builders.recorded_runs import RecordedRuns, recorded
from tests.support.builders.storytelling import requested, requester, run_id

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


async def test_a_tree_is_in_the_trace_of_its_first_run() -> None:
    found = contexts(run(1), run(2, by=1), run(3, by=2))
    trace = run_id(1).int
    assert await found.of(run_id(3)) == TraceContext(trace, span_id_of(run_id(2)), False, True)
    assert await found.of(run_id(1)) == TraceContext(trace, None, False, True)


async def test_the_next_spawn_of_a_root_session_begins_another_trace() -> None:
    found = contexts(run(1), run(2))
    assert (await found.of(run_id(2))).trace_id == run_id(2).int


async def test_what_is_below_a_run_of_somebodys_trace_is_in_it_too() -> None:
    found = contexts(run(1), run(2, by=1, traceparent=BROUGHT), run(3, by=2))
    assert await found.of(run_id(2)) == TraceContext(int(TRACE, 16), int(CALLER, 16), True, True)
    below = TraceContext(int(TRACE, 16), span_id_of(run_id(2)), False, True)
    assert await found.of(run_id(3)) == below


async def test_whoever_asks_for_no_spans_gets_none_of_the_tree_either() -> None:
    found = contexts(run(1, traceparent=f"00-{TRACE}-{CALLER}-00"), run(2, by=1))
    assert not (await found.of(run_id(2))).is_sampled


async def test_a_message_goes_on_in_the_trace_of_its_session() -> None:
    found = contexts(run(1), run(2, by=1), message(5, first=1), message(6, first=2))
    trace, top = run_id(1).int, span_id_of(run_id(1))
    assert await found.of(run_id(5)) == TraceContext(trace, top, False, True)
    assert await found.of(run_id(6)) == TraceContext(trace, top, False, True)
    own = contexts(run(1), message(5, first=1, traceparent=BROUGHT))
    assert (await own.of(run_id(5))).trace_id == int(TRACE, 16)


async def test_what_was_found_is_not_read_again() -> None:
    log = RecordedRuns(run(1), run(2, by=1), run(3, by=2))
    found = TraceContexts(log.as_log())
    for number in (3, 2, 1, 3):
        await found.of(run_id(number))
    assert log.reads == 3


@pytest.mark.parametrize("text", [None, f"00-{'0' * 32}-{CALLER}-01", f"00-{TRACE}-{'0' * 16}-01"])
def test_what_names_no_trace_is_none(text: str | None) -> None:
    assert read_traceparent(text) is None

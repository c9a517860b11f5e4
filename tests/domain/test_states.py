"""The one fold: its events, and the states that it keeps."""

from collections.abc import Iterator

import pytest

from domain.event_types import AnyEvent
from domain.run.events import RunEvent
from domain.states import States, StreamEvent, VersionGapError, states
from domain.values.record import CONFIG_STREAM, run_stream, session_stream
from domain.values.refusals import CorruptHistoryError
from tests.support.builders.run_histories import a_started_run
from tests.support.builders.storytelling import ROOT, observed, requested, run_id, stamp

RUN = run_id(1)


def life_of(number: int) -> Iterator[StreamEvent]:
    """Return the first events of a run with this number."""
    stream, rest = run_stream(run_id(number)), a_started_run()[1:]
    events: tuple[RunEvent, ...] = (requested(run_id=run_id(number)), *rest)
    for version, event in enumerate(events, 1):
        yield StreamEvent(stream, event, stamp(100 * number + version, version))


def test_each_event_comes_with_the_states_around_it() -> None:
    events = list(life_of(1))
    steps = list(states(events))
    assert [step.at for step in steps] == events
    assert [step.before for step in steps] == [None, *(step.after for step in steps[:-1])]
    assert [step.run.version for step in steps] == [event.stamp.version for event in events]


@pytest.mark.parametrize(
    ("stream", "event"),
    [
        (run_stream(run_id(2)), requested(run_id=RUN)),
        (f"run:{RUN.hex}", requested(run_id=RUN)),
        (run_stream(RUN), observed()),
        (session_stream("agent:other:main"), observed()),
        (session_stream(ROOT), requested(run_id=RUN)),
        (CONFIG_STREAM, observed()),
        ("nothing", requested(run_id=RUN)),
        ("run:x", requested(run_id=RUN)),
    ],
)
def test_event_in_another_stream_is_corrupt(stream: str, event: AnyEvent) -> None:
    memory = States()
    with pytest.raises(CorruptHistoryError):
        memory.take(stream, event, stamp(1))
    assert memory.runs == {}
    assert memory.sessions == {}


@pytest.mark.parametrize("left_out", [0, 1, 3])
def test_event_after_a_gap_is_corrupt(left_out: int) -> None:
    events = list(life_of(1))
    del events[left_out]
    text = f"version {left_out + 2} of {run_stream(RUN)} follows version {left_out}"
    with pytest.raises(VersionGapError, match=text):
        list(states(events))


def test_states_used_longest_ago_leave_first() -> None:
    memory = States(states_max=2)
    lives = {number: list(life_of(number)) for number in (1, 2, 3)}
    for life in lives.values():
        list(states(life[:2], memory))
    # The first run is used by the next page, which begins with its third event.
    page = [(event.stream, event.stamp.version) for event in lives[1][2:]]
    assert memory.missing(page) == ([], [])
    (left,) = memory.shrink()
    assert left.version == 2
    assert list(memory.runs) == [run_id(3), run_id(1)]
    # Streams with invalid names need no state: their events are refused when they are applied.
    assert memory.missing([("run:x", 4), ("nothing", 4)]) == ([], [])
    again = [(event.stream, event.stamp.version) for event in lives[2][2:]]
    assert memory.missing([*again, (session_stream(ROOT), 7), (CONFIG_STREAM, 2)]) == (
        [run_id(2)],
        [ROOT],
    )

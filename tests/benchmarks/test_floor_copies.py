"""Rows that the floor writes."""

from uuid import UUID, uuid4

from benchmarks.floor import Copies, TableRows

RUN, FOREVER = uuid4(), 2**62
KEY = "agent:main:bench-0000000000000001"
EVENTS = TableRows(
    "events",
    ("position", "stream", "append_last", "run_id", "state"),
    ((41, f"session:{KEY}", 42, RUN, b"{}"), (42, f"run:{RUN}", 42, RUN, b"{}")),
)
RUNS = TableRows(
    "runs",
    ("run_id", "requester", "from_position", "to_position", "label"),
    ((RUN, KEY, 41, 42, None), (RUN, KEY, 42, FOREVER, None)),
)


def test_copies_are_as_large_as_the_spawn_and_never_meet() -> None:
    copies = Copies((EVENTS, RUNS))
    made = [copies.next() for _ in range(3)]
    positions = [row for copy in made for row in (copy[0][0], copy[0][5])]
    assert positions == [1, 2, 3, 4, 5, 6]
    assert len({copy[0][3] for copy in made}) == 3
    assert len({copy[1][1] for copy in made}) == 3
    for copy in made:
        assert [len(values) for values in copy] == [10, 10]
        assert len(str(copy[1][1])) == len(KEY)


def test_within_a_copy_what_was_the_same_is_the_same() -> None:
    (events, runs) = Copies((EVENTS, RUNS)).next()
    run_id = events[3]
    assert isinstance(run_id, UUID)
    assert run_id != RUN
    assert events[8] == runs[0] == runs[5] == run_id
    assert runs[1] == runs[6] != KEY
    assert (events[2], events[7]) == (2, 2)
    assert (runs[2], runs[3], runs[7], runs[8]) == (1, 2, 2, FOREVER)
    assert runs[4] is None

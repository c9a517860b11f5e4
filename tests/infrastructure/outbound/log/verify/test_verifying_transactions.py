"""The rows of a transaction are compared where it ends, wherever pages and ranges are cut."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.states import MissingStates, State
from infrastructure.outbound.log.verify import ranges, verify
from infrastructure.outbound.log.verify.ranges import RangeChecker
from infrastructure.outbound.log.verify.refold import RecordedStates
from infrastructure.outbound.log.verify.rows import open_read_connection
from tests.support.builders.damaged_log import ToldLog
from tests.support.builders.family_log import a_family
from tests.support.builders.submissions import recording
from tests.support.servers.running_log import RunningLog
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.server

LENGTHS = (1, 9, 2, 14, 3)


@pytest.fixture
async def cut(running: RunningLog, tmp_path: Path) -> ToldLog:
    """A family's history in transactions of very different lengths."""
    changes = [(one.stream, one.event) for one in a_family()]
    number = 0
    while changes:
        length = LENGTHS[number % len(LENGTHS)]
        taken, changes = changes[:length], changes[length:]
        await running.log.submit(recording(*taken))
        number += 1
    return ToldLog(running.url, tmp_path)


def _inside(cut: ToldLog) -> tuple[str, int, int]:
    """A run, a position at which it has an event but no row, and where its next row begins."""
    ((run_id, at, ended),) = cut.ask(
        "SELECT run_id::text, position, (SELECT min(from_position) FROM runs"
        " WHERE runs.run_id = events.run_id AND from_position > position) AS ended FROM events"
        " WHERE stream = 'run:' || run_id AND version > 3 AND NOT EXISTS (SELECT FROM runs"
        " WHERE runs.run_id = events.run_id AND from_position = position)"
        " ORDER BY position DESC LIMIT 1"
    )
    return run_id, at, ended


@pytest.mark.parametrize("page", nightly_but([1, 4, 1_000], [4]))
@pytest.mark.parametrize(("size", "together"), [(1, 1), (5, 1), (5, 3), (1_000, 1)])
def test_a_right_log_has_no_difference_however_it_is_looked_over(
    cut: ToldLog, monkeypatch: pytest.MonkeyPatch, page: int, size: int, together: int
) -> None:
    monkeypatch.setattr(ranges, "PAGE_EVENTS", page)
    last = cut.last
    counted = {"runs": 0, "sessions": 0}
    head = cut.verify().head
    with open_read_connection(cut.url) as connection:
        for number, first in enumerate(range(1, last + 1, size)):
            if number % together == 0:
                checker = RangeChecker(connection, head.log_id, head.head_hash)
            found = checker.check(ranges.Range(first, min(first + size - 1, last)))
            assert found.difference is None
            counted["runs"] += found.counts.run_rows
            counted["sessions"] += found.counts.session_rows
    # Each row was compared once, in the range in which its transaction ends.
    assert counted == {table: cut.one(f"SELECT count(*) FROM {table}") for table in counted}
    assert counted["runs"] < cut.one("SELECT count(*) FROM events WHERE stream LIKE 'run:%'")


def test_a_range_behind_another_reads_no_state_again(
    cut: ToldLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    load = RecordedStates.load

    def loading(self: RecordedStates, missing: MissingStates, at: int) -> Iterator[State]:
        read.append(len(missing.runs) + len(missing.sessions))
        return load(self, missing, at)

    monkeypatch.setattr(RecordedStates, "load", loading)
    head, middle = cut.verify().head, cut.last // 2
    with open_read_connection(cut.url) as connection:
        checker = RangeChecker(connection, head.log_id, head.head_hash)
        read.clear()
        for span in (ranges.Range(1, middle), ranges.Range(middle + 1, cut.last)):
            assert checker.check(span).difference is None
        assert sum(read) == 0
        assert checker.check(ranges.Range(middle + 1, cut.last)).difference is None
        assert sum(read) > 0


def test_a_process_goes_on_behind_its_last_range() -> None:
    spans = [ranges.Range(first, first + 9) for first in range(1, 81, 10)]
    queue = ranges.RangeQueue(spans)
    one, other = queue.take(behind=0), queue.take()
    assert [next(one), next(other), next(one), next(other)] == [spans[n] for n in (0, 4, 1, 5)]
    # Where it meets the other one it begins anew, in the middle of what is left.
    assert [next(one), next(one), next(one)] == [spans[n] for n in (2, 3, 7)]
    assert [*other, *one] == [spans[6]]


@pytest.mark.parametrize("size", nightly_but([10, 40_000], [10]))
def test_a_row_for_an_event_in_the_middle_of_a_transaction_is_one_too_many(
    cut: ToldLog, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(verify, "RANGE_EVENTS_MAX", size)
    assert cut.verify().difference is None
    run_id, at, ended = _inside(cut)
    cut.do("CREATE TABLE copied AS SELECT * FROM runs WHERE from_position = %s", ended)
    cut.do("UPDATE copied SET from_position = %s, to_position = %s, version = 4", at, ended)
    cut.do(
        "UPDATE runs SET to_position = %s WHERE run_id = %s AND to_position = %s", at, run_id, ended
    )
    cut.do("INSERT INTO runs SELECT * FROM copied")
    assert cut.found() == (at, "projection")
    assert cut.says().startswith(f"position {at}: a row of run {run_id} begins here")


@pytest.mark.nightly
def test_a_changed_row_is_found_in_a_log_of_long_transactions(
    cut: ToldLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "RANGE_EVENTS_MAX", 10)
    for table in ("runs", "sessions"):
        for (here,) in cut.ask(f"SELECT from_position FROM {table} ORDER BY 1"):
            cut.do(f"UPDATE {table} SET version = version + 1 WHERE from_position = %s", here)
            assert cut.found() == (here, "projection")
            cut.do(f"UPDATE {table} SET version = version - 1 WHERE from_position = %s", here)


def test_a_verification_that_is_resumed_inside_of_a_transaction_finds_no_difference(
    cut: ToldLog,
) -> None:
    whole = cut.verify().checked
    for position in range(1, cut.last):
        (digest,) = cut.ask("SELECT chain_hash FROM events WHERE position = %s", position)[0]
        verify.note_progress(cut.state_file, verify.Progress(whole.log_id, position, bytes(digest)))
        assert cut.verify(resume=True).difference is None

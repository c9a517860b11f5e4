"""Fold of the log into rows, each true between two positions."""

from collections.abc import Callable, Container
from itertools import pairwise
from typing import Generic, TypeVar
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.projections import fold as fold_module
from application.projections.fold import FOREVER, STATE_VERSIONS_MAX, Fold, RowChanges, RowSpan
from application.projections.run_rows import RunRow
from application.projections.session_rows import SessionRow
from domain.event_types import ConfigurationActivated
from domain.values.record import CONFIG_STREAM, run_stream, session_stream
from domain.values.refusals import CorruptHistoryError
from tests.support.builders import run_histories as past
from tests.support.builders.family_log import Recorded, a_family
from tests.support.builders.storytelling import ROOT, observed, ref, run_id, stamp
from tests.support.tiers import examples

RUN = run_id(1)
Row = TypeVar("Row")
Key = TypeVar("Key")


HISTORY = a_family()


def folded(events: list[Recorded], before: Fold | None = None, ends: Container[int] = ()) -> Fold:
    """Return a new batch: the states so far without rows, in one transaction or several that end at
    these positions.
    """
    fold = Fold(before.runs.values(), before.sessions.values()) if before else Fold((), ())
    for event in events:
        fold.apply(event.stream, event.event, event.stamp)
        if event.stamp.position in ends:
            fold.end_transaction()
    fold.end_transaction()
    return fold


class Table(Generic[Key, Row]):
    """Stored rows, which close and append the changes of a batch as a database would."""

    def __init__(self) -> None:
        self.rows: list[tuple[Key, RowSpan[Row]]] = []

    def store(self, changes: RowChanges[Key, Row], key: Callable[[Row], Key]) -> None:
        for closed, at in changes.closed.items():
            self._close(closed, at, closed in changes.kept)
        self.rows += [(key(span.row), span) for span in changes.opened]

    def _close(self, key: Key, at: int, keeps: bool) -> None:
        is_open = [
            number
            for number, (owner, span) in enumerate(self.rows)
            if owner == key and span.to_position == FOREVER
        ]
        assert len(is_open) == 1, f"{len(is_open)} rows of {key} are open"
        span = self.rows[is_open[0]][1]
        self.rows[is_open[0]] = (key, RowSpan(span.row, span.from_position, at, keeps))


class Tables:
    """The rows of both projections."""

    def __init__(self) -> None:
        self.runs: Table[UUID, RunRow] = Table()
        self.sessions: Table[str, SessionRow] = Table()

    def store(self, fold: Fold) -> None:
        self.runs.store(fold.rows["runs"], lambda row: row.run_id)
        self.sessions.store(fold.rows["sessions"], lambda row: row.session_key)


def test_open_transaction_has_no_rows() -> None:
    fold = Fold((), ())
    for event in HISTORY[:3]:
        fold.apply(event.stream, event.event, event.stamp)
    assert all(changes == RowChanges() for changes in fold.take_rows().values())
    fold.end_transaction()
    assert all(changes.opened for changes in fold.take_rows().values())


def test_rows_have_the_state_of_each_position() -> None:
    whole = folded(HISTORY, ends=range(len(HISTORY)))
    for position in range(1, len(HISTORY) + 1):
        then = folded(HISTORY[:position])
        runs = _true_at(whole.rows["runs"], position)
        sessions = _true_at(whole.rows["sessions"], position)
        assert {row.run_id: row.state for row in runs} == then.runs
        assert {row.session_key: row.state for row in sessions} == then.sessions
        assert (len(runs), len(sessions)) == (len(then.runs), len(then.sessions))


ENDS = st.sets(st.integers(min_value=1, max_value=len(HISTORY) - 1))


@given(ends=ENDS, cuts=ENDS, versions_max=st.sampled_from([2, 3, STATE_VERSIONS_MAX]))
@examples(60)
def test_fold_in_pieces_gives_the_same_rows(
    ends: set[int], cuts: set[int], versions_max: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold_module, "STATE_VERSIONS_MAX", versions_max)
        _compare_with_pieces(ends, cuts)


def _compare_with_pieces(ends: set[int], cuts: set[int]) -> None:
    whole, pieces = Tables(), Tables()
    whole.store(folded(HISTORY, ends=ends))
    before: Fold | None = None
    edges = [0, *sorted(ends & cuts), len(HISTORY)]
    for start, stop in pairwise(edges):
        before = folded(HISTORY[start:stop], before, ends)
        pieces.store(before)
    assert pieces.runs.rows == whole.runs.rows
    assert pieces.sessions.rows == whole.sessions.rows


def test_past_row_keeps_its_state_if_another_block_of_versions_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fold_module, "STATE_VERSIONS_MAX", 4)
    spans = folded(HISTORY, ends=range(len(HISTORY))).rows["runs"].opened
    of_first = [(span.row.version, span.has_state) for span in spans if span.row.run_id == RUN]
    assert of_first[:9] == [(version, version % 4 == 3) for version in range(1, 10)]
    assert of_first[-1][1]
    jumped = folded(HISTORY, ends={4, 12}).rows["runs"].opened
    assert [item.has_state for item in jumped if item.row.run_id == RUN] == [True, True, True]


def test_version_is_counted_per_stream() -> None:
    fold = folded(HISTORY[:5])
    assert fold.version_of(run_stream(RUN)) == 3
    assert fold.version_of(session_stream(ROOT)) == 2
    for unknown in (run_stream(run_id(9)), session_stream("agent:main:other"), CONFIG_STREAM):
        assert fold.version_of(unknown) == 0


def test_configuration_makes_no_rows() -> None:
    activated = ConfigurationActivated(
        revision=1, content=ref("{}"), source="built-in", activated_by="system"
    )
    fold = Fold((), ())
    fold.apply(CONFIG_STREAM, activated, stamp(1))
    assert (fold.rows["runs"].opened, fold.rows["sessions"].opened) == ([], [])


def test_misfit_changes_no_state_or_row() -> None:
    fold = folded(HISTORY[:3])
    with pytest.raises(CorruptHistoryError):
        fold.apply(run_stream(RUN), past.archived(), stamp(4))
    with pytest.raises(CorruptHistoryError):
        fold.apply(session_stream(ROOT), observed(), stamp(4))
    same = folded(HISTORY[:3])
    assert (fold.runs, fold.sessions) == (same.runs, same.sessions)
    assert fold.rows == same.rows


def _true_at(changes: RowChanges[Key, Row], position: int) -> list[Row]:
    return [
        item.row for item in changes.opened if item.from_position <= position < item.to_position
    ]

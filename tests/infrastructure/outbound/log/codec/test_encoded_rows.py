"""A row that is encoded behind the one before it is the row that is encoded by itself."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.projections.fold import Fold, RowSpan, StreamFold
from application.projections.run_rows import RunFinding, RunRow, run_row
from application.projections.session_rows import SessionFinding, SessionRow
from benchmarks.history.copied_rows import copied
from domain.run.state import Run
from domain.session.state import Session
from infrastructure.outbound.log.append.store import PRINTED, row_arrays
from infrastructure.outbound.log.codec import rows
from infrastructure.outbound.log.codec.columns import RUN_COLUMNS, SESSION_COLUMNS
from infrastructure.outbound.log.codec.rows import RowEncoder, run_encoder, session_encoder
from infrastructure.outbound.log.rebuild.fold_part import with_spans
from tests.support.family_histories import a_family
from tests.support.family_log import Recorded

State = TypeVar("State", Run, Session)
SPAN = ("bigint", "bigint")
INSTANTS = st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
TEXTS = st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


HISTORY = a_family()


def as_stored(spans: Sequence[RowSpan[Any]], columns: dict[str, str]) -> bytes:
    """The rows as the writer encodes them, each by itself."""
    return copied([*(columns | PRINTED).values(), *SPAN], row_arrays(spans, columns))


def encoded(events: Sequence[Recorded], known: Sequence[bool]) -> StreamFold[bytes, bytes]:
    """The rows of a history; where it is not known, an encoder is not told what was before."""
    told = iter(known)

    def forgetful(encoder: RowEncoder[State]) -> Any:
        def encode(state: State, before: State | None, changes: Mapping[str, object]) -> bytes:
            return encoder.encode(state, before if next(told) else None, changes)

        return encode

    fold: StreamFold[bytes, bytes] = StreamFold(
        (), (), forgetful(run_encoder()), forgetful(session_encoder())
    )
    for one in events:
        fold.apply(one.stream, one.event, one.stamp)
    return fold


@given(st.lists(st.booleans(), min_size=len(HISTORY), max_size=len(HISTORY)))
def test_rows_are_encoded_as_they_are_stored(known: list[bool]) -> None:
    plain = Fold((), ())
    for one in HISTORY:
        plain.apply(one.stream, one.event, one.stamp)
    fold = encoded(HISTORY, known)
    assert with_spans(fold.run_rows.opened, RUN_COLUMNS) == as_stored(
        plain.run_rows.opened, RUN_COLUMNS
    )
    assert with_spans(fold.session_rows.opened, SESSION_COLUMNS) == as_stored(
        plain.session_rows.opened, SESSION_COLUMNS
    )
    assert fold.run_rows.closed == plain.run_rows.closed
    assert fold.run_rows.keys == plain.run_rows.keys


CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "label": TEXTS,
        "holder": TEXTS,
        "outcome": st.sampled_from([None, "success", "stopped"]),
        "stage": st.sampled_from(["requested", "queued", "started", "ended", "announced"]),
        "version": st.integers(1, 2**31 - 1),
        "lane": TEXTS,
        "lane_depth": st.none() | st.integers(0, 9),
        "queued_position": st.none() | st.integers(1, 2**62),
        "started_at": st.none() | INSTANTS,
        "ended_at": st.none() | INSTANTS,
        "archive_at": st.none() | INSTANTS,
        "effects_at": st.none() | INSTANTS,
        "pending_descendants": st.integers(0, 3),
        "inbox": st.none(),
    },
)


@given(st.lists(st.tuples(CHANGES, st.booleans()), max_size=6))
def test_whatever_changes_is_encoded_and_what_was_left_out_too(
    steps: list[tuple[dict[str, Any], bool]],
) -> None:
    fold = Fold((), ())
    for one in HISTORY:
        fold.apply(one.stream, one.event, one.stamp)
    run = next(iter(fold.runs.values()))
    encoder = run_encoder()
    encoder.encode(run, None, {})
    for changes, left_out in steps:
        before, run = run, run.changed(changes)
        if left_out:
            continue
        row = encoder.encode(run, before, changes)
        expected = as_stored([RowSpan(run_row(run), 1, 2)], RUN_COLUMNS)
        assert with_spans([RowSpan(row, 1, 2)], RUN_COLUMNS) == expected


def test_only_the_rows_that_were_used_last_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "CACHED_ROWS_MAX", 1)
    encoder = run_encoder()
    fold = StreamFold((), (), encoder.encode, session_encoder().encode)
    for one in HISTORY:
        fold.apply(one.stream, one.event, one.stamp)
    assert encoder.kept > 1
    encoder.forget()
    assert encoder.kept == 1


@pytest.mark.parametrize(
    ("row", "state", "finding"), [(RunRow, Run, RunFinding), (SessionRow, Session, SessionFinding)]
)
def test_a_column_is_a_field_of_the_state_or_a_finding(row: Any, state: Any, finding: Any) -> None:
    found = set(finding._fields)
    assert set(row._fields) - {"state"} - found <= set(state.model_fields)
    assert found <= set(row._fields)

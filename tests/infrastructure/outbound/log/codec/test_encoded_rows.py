"""A row that is encoded behind the one before it is the row that is encoded by itself."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.projections.catalog import PROJECTIONS
from application.projections.fold import FOREVER, Fold, RowSpan
from application.projections.projection import Projection
from application.projections.run_rows import RUNS, run_row
from benchmarks.history.storage.event_rows import copied
from infrastructure.outbound.log.append.store import row_arrays
from infrastructure.outbound.log.codec import rows
from infrastructure.outbound.log.codec.columns import encodings_of
from infrastructure.outbound.log.codec.rows import RowEncoder
from infrastructure.outbound.log.rebuild.fold_part import with_spans
from tests.support.builders.family_log import Recorded, a_family

SPAN = ("bigint", "bigint")
INSTANTS = st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
TEXTS = st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


HISTORY = a_family()


def as_stored(spans: Sequence[RowSpan[Any]], projection: Projection[Any, Any]) -> bytes:
    """The rows as the writer encodes them, each by itself."""
    return copied([*encodings_of(projection).values(), *SPAN], row_arrays(spans, projection))


def encoded(events: Sequence[Recorded], known: Sequence[bool]) -> Fold:
    """The rows of a history; where it is not known, an encoder has forgotten what was before."""
    remembers = iter(known)

    def forgetful(projection: Projection[Any, Any]) -> Any:
        encoder = RowEncoder(projection)

        def encode(state: Any) -> rows.EncodedRow:
            nonlocal encoder
            if not next(remembers):
                encoder = RowEncoder(projection)
            return encoder.encode(state)

        return encode

    fold = Fold((), (), forgetful)
    for one in events:
        fold.apply(one.stream, one.event, one.stamp)
        fold.end_transaction()
    return fold


@given(st.lists(st.booleans(), min_size=len(HISTORY), max_size=len(HISTORY)))
def test_rows_are_encoded_as_they_are_stored(known: list[bool]) -> None:
    plain = Fold((), ())
    for one in HISTORY:
        plain.apply(one.stream, one.event, one.stamp)
        plain.end_transaction()
    fold = encoded(HISTORY, known)
    for projection in PROJECTIONS:
        encoded_rows, expected = fold.rows[projection.name], plain.rows[projection.name]
        assert with_spans(encoded_rows.opened, projection) == as_stored(expected.opened, projection)
        assert (encoded_rows.closed, encoded_rows.kept) == (expected.closed, expected.kept)
        assert encoded_rows.keys == expected.keys


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
        fold.end_transaction()
    run = next(iter(fold.runs.values()))
    encoder = RowEncoder(RUNS)
    encoder.encode(run)
    for changes, left_out in steps:
        run = run.changed(changes)
        if left_out:
            continue
        row = encoder.encode(run)
        expected = as_stored([RowSpan(run_row(run), 1, FOREVER)], RUNS)
        assert with_spans([RowSpan(row, 1, FOREVER)], RUNS) == expected


def test_only_the_rows_that_were_used_last_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "CACHED_ROWS_MAX", 1)
    encoders = {one.name: RowEncoder(one) for one in PROJECTIONS}
    fold = Fold((), (), lambda one: encoders[one.name].encode)
    for one in HISTORY:
        fold.apply(one.stream, one.event, one.stamp)
        fold.end_transaction()
    encoder = encoders["runs"]
    assert encoder.size > 1
    encoder.forget()
    assert encoder.size == 1

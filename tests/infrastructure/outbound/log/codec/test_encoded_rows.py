"""A row that is encoded behind the one before it, or in binary columns, is the row itself."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.adapt import Transformer
from psycopg.types.array import ArrayBinaryLoader

from application.projections.catalog import PROJECTIONS
from application.projections.fold import FOREVER, Fold, RowSpan
from application.projections.run_rows import RUNS, run_row
from benchmarks.history.storage.event_rows import copied
from infrastructure.outbound.log.append.store import row_arrays
from infrastructure.outbound.log.codec import rows
from infrastructure.outbound.log.codec.binary import encode_column
from infrastructure.outbound.log.codec.columns import encodings_of
from infrastructure.outbound.log.codec.rows import RowEncoder
from infrastructure.outbound.log.rebuild.fold_part import with_spans
from tests.support.builders.family_log import a_family

INSTANTS = st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
TEXTS = st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


def folded(*encoders: Any) -> Fold:
    """Return the fold of a family's history."""
    fold = Fold((), (), *encoders)
    for event in a_family():
        fold.apply(event.stream, event.event, event.stamp)
        fold.end_transaction()
    return fold


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
def test_every_change_of_a_row_is_encoded(steps: list[tuple[dict[str, Any], bool]]) -> None:
    run = next(iter(folded().runs.values()))
    encoder = RowEncoder(RUNS)
    encoder.encode(run)
    for changes, left_out in steps:
        run = run.changed(changes)
        if left_out:
            continue
        row = encoder.encode(run)
        stored = row_arrays([RowSpan(run_row(run), 1, FOREVER)], RUNS)
        expected = copied([*encodings_of(RUNS).values(), "bigint", "bigint"], stored)
        assert with_spans([RowSpan(row, 1, FOREVER)], RUNS) == expected


def test_rows_used_last_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "CACHED_ROWS_MAX", 1)
    encoders = {projection.name: RowEncoder(projection) for projection in PROJECTIONS}
    folded(lambda table: encoders[table.name].encode)
    encoder = encoders["runs"]
    assert encoder.size > 1
    encoder.forget()
    assert encoder.size == 1


class Reader(ArrayBinaryLoader):
    """Reads arrays of any type: each names its own."""

    base_oid = 0


def read(kind: str, values: Sequence[Any]) -> list[Any]:
    return list(Reader(0, Transformer()).load(encode_column(kind, values).data))


NOW = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)

VALUES: list[tuple[str, Any]] = [
    ("text", "é"),
    ("bytea", b"\0x"),
    ("uuid", UUID(int=7)),
    ("smallint", -3),
    ("int", 70_000),
    ("bigint", 1 << 40),
    ("timestamptz", NOW),
    ("boolean", True),
]


@pytest.mark.parametrize(("kind", "value"), VALUES)
def test_column_is_read_as_it_was_made(kind: str, value: Any) -> None:
    for values in ([], [value], [None], [None, None], [None, value], [value, None], (value,) * 3):
        assert read(kind, values) == list(values)

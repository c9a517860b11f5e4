"""Check of the projections' rows: each must equal the fold of the events."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import DecodeError

from application.ports.verifications import Difference
from application.projections.fold import FOREVER
from application.projections.projection import Projection
from domain.values.record import Fact
from infrastructure.outbound.log.codec.binary import encode_column
from infrastructure.outbound.log.codec.columns import columns_of
from infrastructure.outbound.log.verify.rows import ReadConnection

_ROWS = (
    "SELECT {columns}, from_position, to_position FROM {table}"
    " WHERE {key} = ANY(%b::{kind}[]) AND from_position BETWEEN %s AND %s"
)


def check_rows(
    connection: ReadConnection,
    projection: Projection[Any, Any],
    states: Mapping[int, Any],
    first: int,
    last: int,
) -> Difference | None:
    """Return the first row begun in a range of positions that differs from the fold of the events,
    or None.

    Args:
        connection: Read connection.
        projection: The projection of the rows.
        states: The folded states, by the position where each begins.
        first: First position of the range.
        last: Last position of the range.
    """
    if not states:
        return None
    expected = {position: projection.row_of(state) for position, state in states.items()}
    columns, noun = columns_of(projection), projection.noun
    kind = columns[projection.key]
    query = _ROWS.format(
        columns=", ".join(columns), table=projection.name, key=projection.key, kind=kind
    )
    keys = list({row[0] for row in expected.values()})
    values = [encode_column(kind, keys), first, last]
    wrong: list[tuple[int, str]] = []
    for stored in connection.execute(query, values, binary=True).fetchall():
        text, position, ends = stored[-3:]
        row = expected.pop(position, None)
        state = row[-1] if row is not None and (text is not None or ends == FOREVER) else None
        # Compare slices: this runs for every row, and naming all values would double its time.
        if row is not None and row[:-1] == stored[:-3] and _is_same_state(state, text):
            continue
        key = stored[0]
        if row is None or row[0] != key:
            if row is not None:
                expected[position] = row
            wrong.append((position, f"a row of {noun} {key} begins here without an event"))
            continue
        names = ", ".join(_differing_columns(columns, (*row[:-1], state), stored[:-2]))
        difference = f"the row of {noun} {key} differs from its events: {names}"
        wrong.append((position, difference))
    wrong += [
        (position, f"the row of {noun} {row[0]} that begins here is missing")
        for position, row in expected.items()
    ]
    if not wrong:
        return None
    position, text = min(wrong)
    return Difference(position, "projection", text)


def _differing_columns(
    columns: Mapping[str, str], row: Sequence[Any], stored: Sequence[Any]
) -> list[str]:
    """Return the columns in which a stored row differs from the expected one; for the state, its
    differing fields."""
    names: list[str] = []
    for name, expected, found in zip(columns, row, stored, strict=True):
        if name != "state":
            if expected != found:
                names.append(name)
        elif not _is_same_state(expected, found):
            fields = _differing_fields(expected, found)
            names += [f"state ({field})" for field in fields] or ["state"]
    return names


def _is_same_state(state: Fact | None, text: str | None) -> bool:
    if state is None or text is None:
        return state is None and text is None
    if state.to_json() == text.encode():
        return True
    # Another release may have written an equal state with a different text.
    try:
        return type(state).from_json(text) == state
    except DecodeError:
        return False


def _differing_fields(state: Fact | None, text: str | None) -> list[str]:
    if state is None or text is None:
        return []
    try:
        stored = type(state).from_json(text)
    except DecodeError:
        return []
    return [
        name for name in state.__struct_fields__ if getattr(stored, name) != getattr(state, name)
    ]

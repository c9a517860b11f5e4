"""The rows of the projections: each is what the fold of the events gives."""

import struct
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from msgspec import DecodeError
from psycopg.sql import Literal

from application.ports.verifications import Difference
from application.projections.fold import FOREVER
from application.projections.projection import Projection
from domain.values.record import Fact
from infrastructure.outbound.log.codec.columns import columns_of
from infrastructure.outbound.log.codec.rows import RowEncoder
from infrastructure.outbound.log.verify.rows import ReadConnection

_COUNT_BYTES = 2
_SPAN = struct.Struct(">4xq4xq")
"""What stands in front of the columns of a row that is copied out, and behind them."""


class RowCheck:
    """Compares the rows of one projection with those that the events make."""

    def __init__(self, connection: ReadConnection, projection: Projection[Any, Any]) -> None:
        self._connection = connection
        self._projection = projection
        self._encoder = RowEncoder(projection)
        self._key_of = attrgetter(projection.key)

    def first_difference(
        self, states: Mapping[int, Any], first: int, last: int
    ) -> Difference | None:
        """Return the first row begun between two positions that is not the one which the events
        give there: `states` are those that they lead to, by the position where each begins."""
        if not states:
            return None
        expected = {position: self._encoder.encode(state) for position, state in states.items()}
        self._encoder.forget()
        found = f"COPY ({self._rows(states, first, last)}) TO STDOUT (FORMAT BINARY)"
        for stored in self._connection.copy_out(found):
            position, ends = _SPAN.unpack_from(stored, len(stored) - _SPAN.size)
            row = expected.get(position)
            if row is None:
                return self._explain(states, first, last)
            cells = stored[_COUNT_BYTES : -_SPAN.size]
            if (ends != FOREVER and cells == row.without_state()) or cells == row.whole():
                del expected[position]
        if not expected:
            return None
        # They are missing, or differ; or a state is there in another text that says the same.
        doubtful = {self._key_of(states[position]) for position in expected}
        those = {at: one for at, one in states.items() if self._key_of(one) in doubtful}
        return self._explain(those, first, last)

    def _rows(self, states: Mapping[int, Any], first: int, last: int) -> str:
        projection, columns = self._projection, columns_of(self._projection)
        keys = Literal(list({self._key_of(one) for one in states.values()}))
        return (
            f"SELECT {', '.join(columns)}, from_position, to_position FROM {projection.name}"
            f" WHERE {projection.key} = ANY({keys.as_string(self._connection)})"
            f" AND from_position BETWEEN {first} AND {last}"
        )

    def _explain(self, states: Mapping[int, Any], first: int, last: int) -> Difference | None:
        """Compare value by value."""
        projection, noun = self._projection, self._projection.noun
        columns = columns_of(projection)
        expected = {position: projection.row_of(state) for position, state in states.items()}
        wrong: list[tuple[int, str]] = []
        query = self._rows(states, first, last).encode()
        for *stored, text, position, ends in self._connection.execute(query, binary=True):
            row = expected.pop(position, None)
            *cells, state = row or (None,)
            if text is None and ends != FOREVER:
                state = None
            if cells == stored and _is_same_state(state, text):
                continue
            key = stored[0]
            if row is None or row[0] != key:
                if row is not None:
                    expected[position] = row
                wrong.append((position, f"a row of {noun} {key} begins here that no event made"))
                continue
            names = ", ".join(_differing_columns(columns, (*cells, state), (*stored, text)))
            difference = f"the row of {noun} {key} differs from what the events say: {names}"
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
    """The columns in which a stored row is not the expected one; of the state its fields."""
    names: list[str] = []
    for name, expected, found in zip(columns, row, stored, strict=True):
        if name != "state":
            if expected != found:
                names.append(name)
        elif not _is_same_state(expected, found):
            fields = _differing_fields(expected, found)
            names += [f"state ({one})" for one in fields] or ["state"]
    return names


def _is_same_state(state: Fact | None, text: str | None) -> bool:
    if state is None or text is None:
        return state is None and text is None
    if state.to_json() == text.encode():
        return True
    # Written by another release the text may be another one and say the same.
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

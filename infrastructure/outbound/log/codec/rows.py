"""Rows of a projection in PostgreSQL's binary COPY format, version after version.

A row shares most of its values with the one before it, of the same run or session, so only what
has changed is encoded anew; but for the state, which is printed as a whole: putting it together
from the texts of its fields takes Python as long.
"""

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

from application.projections.run_rows import RunFinding, run_finding
from application.projections.session_rows import SessionFinding, session_finding
from domain.run.state import Run
from domain.session.state import Session
from infrastructure.outbound.log.codec.columns import RUN_COLUMNS, SESSION_COLUMNS

CACHED_VALUES_MAX = 1_024
CACHED_ROWS_MAX = 4_096


"""So many runs, or sessions, are remembered with the row that was encoded last."""


AggregateState = TypeVar("AggregateState", Run, Session)
_NULL = b"\xff\xff\xff\xff"
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_LENGTH = struct.Struct(">i").pack
_INT = struct.Struct(">ii").pack
_LONG = struct.Struct(">iq").pack


class _LastRow(NamedTuple, Generic[AggregateState]):
    state: AggregateState
    finding: tuple[Any, ...]
    cells: list[bytes]


class RowEncoder(Generic[AggregateState]):
    """Encodes the rows of one projection: `columns` in their order, the state last, each as a
    four-byte length and its bytes.

    `finding_of` gives those columns of a state that are not its fields under the same name.
    """

    def __init__(
        self,
        columns: Mapping[str, str],
        finding: type[NamedTuple],
        finding_of: Callable[[AggregateState], tuple[Any, ...]],
    ) -> None:
        *names, _ = columns
        cells = {name: (place, _ENCODE[columns[name]]) for place, name in enumerate(names)}
        self._found = [cells.pop(name) for name in finding._fields]
        self._given = cells
        self._finding_of: Callable[[AggregateState], tuple[Any, ...]] = finding_of
        self._nothing = (None,) * len(self._found), [_NULL] * len(names)
        # By the position at which the run or session was created, in the order of use.
        self._last: dict[int, _LastRow[AggregateState]] = {}

    def encode(
        self, state: AggregateState, before: AggregateState | None, changes: Mapping[str, Any]
    ) -> bytes:
        """The row of a state, which is `before` but for the fields of `changes`."""
        last = self._last.pop(state.created_position, None)
        if last is not None and last.state is before:
            # Nobody else has these cells, and the row before has been given away.
            _, found, cells = last
        else:
            found, cells = self._nothing[0], self._nothing[1].copy()
            changes = state.__dict__
        given = self._given
        for name in changes:
            if name in given:
                place, encode = given[name]
                value = changes[name]
                cells[place] = _NULL if value is None else encode(value)
        finding = self._finding_of(state)
        if finding != found:
            for (place, encode), value in zip(self._found, finding, strict=True):
                cells[place] = _NULL if value is None else encode(value)
        self._last[state.created_position] = _LastRow(state, finding, cells)
        # What `model_dump_json` asks, which makes a string of it.
        text = state.__pydantic_serializer__.to_json(state, exclude_none=True)
        return b"%b%b%b" % (b"".join(cells), _LENGTH(len(text)), text)

    @property
    def kept(self) -> int:
        """How many runs or sessions are remembered."""
        return len(self._last)

    def forget(self) -> None:
        """Remember no more than those that were used last."""
        for key in list(islice(self._last, max(0, len(self._last) - CACHED_ROWS_MAX))):
            del self._last[key]


def run_encoder() -> RowEncoder[Run]:
    """Encodes rows of runs."""
    return RowEncoder(RUN_COLUMNS, RunFinding, run_finding)


def session_encoder() -> RowEncoder[Session]:
    """Encodes rows of sessions."""
    return RowEncoder(SESSION_COLUMNS, SessionFinding, session_finding)


@lru_cache(maxsize=CACHED_VALUES_MAX)
def _text(value: str) -> bytes:
    data = value.encode()
    return _LENGTH(len(data)) + data


def _uuid(value: UUID) -> bytes:
    return b"\0\0\0\x10" + value.bytes


@lru_cache(maxsize=CACHED_VALUES_MAX)
def _int(value: int) -> bytes:
    return _INT(4, value)


def _long(value: int) -> bytes:
    return _LONG(8, value)


@lru_cache(maxsize=CACHED_VALUES_MAX)
def _instant(value: datetime) -> bytes:
    since = value - _EPOCH
    return _LONG(8, (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)


_ENCODE: Mapping[str, Callable[[Any], bytes]] = {
    "text": _text,
    "uuid": _uuid,
    "int": _int,
    "bigint": _long,
    "timestamptz": _instant,
}

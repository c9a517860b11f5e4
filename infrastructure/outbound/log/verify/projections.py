"""The rows of the projections: each is what the fold of the events gives."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from application.projections.run_rows import RunRow
from application.projections.session_rows import SessionRow
from domain.run.state import Run
from domain.session.state import Session
from domain.values.refusals import CorruptHistory
from infrastructure.outbound.log.codec.binary import encode_column
from infrastructure.outbound.log.codec.columns import RUN_COLUMNS, SESSION_COLUMNS
from infrastructure.outbound.log.verify.difference import Difference
from infrastructure.outbound.log.verify.rows import ReadConnection

ProjectionState = TypeVar("ProjectionState", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class ProjectionTable(Generic[ProjectionState]):
    """A projection's table; `noun` is what one of its rows is about."""

    name: str
    noun: str
    key: str
    key_type: str
    columns: tuple[str, ...]
    state: type[ProjectionState]
    values: Callable[[Any], tuple[Any, ...]]
    key_of: Callable[[Any], Any]

    @property
    def as_of(self) -> str:
        """The newest rows of some keys that began at a position or before it."""
        return (
            f"SELECT t.state::text FROM unnest(%b::{self.key_type}[]) AS k (key) CROSS JOIN LATERAL"
            f" (SELECT state FROM {self.name} WHERE {self.key} = k.key AND from_position <= %s"
            " ORDER BY from_position DESC LIMIT 1) AS t"
        )

    @property
    def begun(self) -> str:
        """The rows of some keys that began between two positions."""
        return (
            f"SELECT {', '.join(self.columns)}, state::text, from_position FROM {self.name}"
            f" WHERE {self.key} = ANY(%b::{self.key_type}[]) AND from_position BETWEEN %s AND %s"
        )


def _table(
    noun: str,
    key: str,
    columns: Mapping[str, str],
    row: type[NamedTuple],
    state: type[ProjectionState],
) -> ProjectionTable[ProjectionState]:
    names = tuple(name for name in columns if name != "state")
    places = {name: place for place, name in enumerate(row._fields)}
    values, key_of = itemgetter(*(places[name] for name in names)), itemgetter(places[key])
    return ProjectionTable(f"{noun}s", noun, key, columns[key], names, state, values, key_of)


RUNS = _table("run", "run_id", RUN_COLUMNS, RunRow, Run)
SESSIONS = _table("session", "session_key", SESSION_COLUMNS, SessionRow, Session)


def states_as_of(
    connection: ReadConnection,
    table: ProjectionTable[ProjectionState],
    keys: Sequence[Any],
    at: int,
) -> list[ProjectionState]:
    """The states of some keys as of a position, from rows that are verified themselves.

    Where a row ends is not asked for. `CorruptHistory` when a row holds no state.
    """
    if not keys:
        return []
    rows = connection.execute(table.as_of, [encode_column(table.key_type, keys), at]).fetchall()
    try:
        return [table.state.model_validate_json(row[0]) for row in rows]
    except ValidationError as error:
        raise CorruptHistory(f"a row of {table.name} holds no state") from error


def check_rows(
    connection: ReadConnection,
    table: ProjectionTable[ProjectionState],
    rows: Mapping[int, Any],
    first: int,
    last: int,
) -> Difference | None:
    """The first row begun between two positions that is not the one which the events give there:
    `rows` are those, by the position where they begin."""
    expected = dict(rows)
    if not expected:
        return None
    keys = list({table.key_of(row) for row in expected.values()})
    asked = [encode_column(table.key_type, keys), first, last]
    found = connection.execute(table.begun, asked, binary=True).fetchall()
    values_of = table.values
    wrong: list[tuple[int, str]] = []
    for stored in found:
        position = stored[-1]
        row = expected.get(position)
        if (
            row is not None
            and stored[:-2] == values_of(row)
            and _is_same_state(row.state, stored[-2])
        ):
            del expected[position]
            continue
        key = stored[table.columns.index(table.key)]
        if row is None or table.key_of(row) != key:
            text = f"a row of {table.noun} {key} begins here that no event made"
        else:
            del expected[position]
            names = ", ".join(_differing_columns(table, row, stored[:-2], stored[-2]))
            text = f"the row of {table.noun} {key} differs from what the events say: {names}"
        wrong.append((position, text))
    wrong += [
        (position, f"the row of {table.noun} {table.key_of(row)} that begins here is missing")
        for position, row in expected.items()
    ]
    if not wrong:
        return None
    return Difference(*_first_fault(wrong))


def _first_fault(wrong: Sequence[tuple[int, str]]) -> tuple[int, Any, str]:
    position, text = min(wrong)
    return position, "projection", text


def _is_same_state(state: BaseModel, text: str) -> bool:
    # As the writer dumps it, without the detour over a string.
    if state.__pydantic_serializer__.to_json(state, exclude_none=True) == text.encode():
        return True
    # Written by another release the text may be another one and say the same.
    try:
        return type(state).model_validate_json(text) == state
    except ValidationError:
        return False


def _differing_columns(
    table: ProjectionTable[ProjectionState], row: Any, values: Sequence[Any], text: str
) -> list[str]:
    pairs = zip(table.columns, values, table.values(row), strict=True)
    names = [name for name, stored, wanted in pairs if stored != wanted]
    if not _is_same_state(row.state, text):
        names += [f"state ({one})" for one in _differing_fields(row.state, text)] or ["state"]
    return names


def _differing_fields(state: BaseModel, text: str) -> list[str]:
    try:
        stored = type(state).model_validate_json(text)
    except ValidationError:
        return []
    return [
        name for name in type(state).model_fields if getattr(stored, name) != getattr(state, name)
    ]

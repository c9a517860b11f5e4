"""Projections: tables whose rows are derived from the states of runs or sessions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, cast

from domain.run.state import Run
from domain.session.state import Session

Position = Annotated[int, "position"]
"""A position of the log, or another number of that size."""

AggregateState = TypeVar("AggregateState", Run, Session)
Row = TypeVar("Row", bound=tuple[Any, ...])


@dataclass(frozen=True, slots=True, eq=False)
class Projection(Generic[AggregateState, Row]):
    """A table with one row per transaction that changed a run (or session).

    Each such transaction adds a row for the state after its last event, and ends the row before it.

    Attributes:
        name: Name of the table.
        noun: Name of the row's subject in messages.
        version: Increased when the same events give different rows, which are then rebuilt.
        row: A `NamedTuple` that defines the columns. The first is the key: the run's id or the
            session's key. The last may be `state`, stored as JSON with the current row and
            occasionally with a past one; other past states are folded from the stream's events.
    """

    name: str
    noun: str
    version: int
    state: type[AggregateState]
    row: type[Row]
    row_of: Callable[[AggregateState], Row]

    @property
    def key(self) -> str:
        """Return the name of the key column."""
        return cast("type[NamedTuple]", self.row)._fields[0]

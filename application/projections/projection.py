"""A projection: the table whose rows follow from the states of runs, or of sessions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, cast

from domain.run.state import Run
from domain.session.state import Session

Position = Annotated[int, "position"]
"""A position of the log, or another number that may be as large."""

AggregateState = TypeVar("AggregateState", Run, Session)
Row = TypeVar("Row", bound=tuple[Any, ...])


@dataclass(frozen=True, slots=True, eq=False)
class Projection(Generic[AggregateState, Row]):
    """A transaction with events of a run (or of a session) opens one row of it, as it is after the
    last of them, and ends the one before it.

    `name` is the table and `noun` what messages call that of which a row is. `version` is raised
    when the rows change for the same events: then they are made anew. `row` is a `NamedTuple`, and
    the one list of the columns: its first field is the run's id (the session's key); its last one
    may be `state`, which is stored as JSON with the row that is still true and with a past one now
    and then. Any other past state is folded from the events of its stream.
    """

    name: str
    noun: str
    version: int
    state: type[AggregateState]
    row: type[Row]
    row_of: Callable[[AggregateState], Row]

    @property
    def key(self) -> str:
        """The column that names the run or session."""
        return cast("type[NamedTuple]", self.row)._fields[0]

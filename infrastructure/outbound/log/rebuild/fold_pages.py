"""Folds the log page after page in constant memory, however many runs and sessions it tells of.

States stay in a bounded memory; one that was put out of it is loaded again when an event needs it.
"""

from typing import Any

from application.projections.catalog import PROJECTIONS
from application.projections.fold import Fold, RowChanges, StateSource
from domain.states import STATES_MAX
from infrastructure.outbound.log.codec.rows import EncodedRow, RowEncoder
from infrastructure.outbound.log.read.fold_input import FoldPage, fold_page

EncodedRows = RowChanges[Any, EncodedRow]


class PagedFold:
    """Folds page after page of events in constant memory: the states that a page needs and that
    are not in the bounded memory are loaded from the source.

    `states_max` is how many states of each kind are kept between two pages.
    """

    def __init__(self, source: StateSource, *, states_max: int = STATES_MAX) -> None:
        self._source = source
        self._encoders = {one.name: RowEncoder(one) for one in PROJECTIONS}
        self._fold = Fold(
            (), (), lambda one: self._encoders[one.name].encode, states_max=states_max
        )

    @property
    def states_count(self) -> int:
        """How many states are in memory."""
        return len(self._fold.runs) + len(self._fold.sessions)

    async def fold(self, page: FoldPage) -> dict[str, EncodedRows]:
        """The changes of the encoded rows that a page makes, by projection; the pages come in
        order, without gaps, and are of whole transactions.

        `CorruptHistory` when an event does not fit the state before it. After an error the fold is
        not usable any more.
        """
        fold = self._fold
        await fold_page(fold, page, self._source)
        fold.states.shrink()
        for encoder in self._encoders.values():
            encoder.forget()
        return fold.take_rows()

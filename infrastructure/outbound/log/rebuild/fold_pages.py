"""Folds the log page after page in constant memory, however many runs and sessions it tells of.

States stay in a bounded memory; one that was put out of it is loaded again when an event needs it.
"""

from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

from application.projections.catalog import PROJECTIONS
from application.projections.fold import Fold, RowChanges
from infrastructure.outbound.log.codec.rows import EncodedRow, RowEncoder
from infrastructure.outbound.log.read.fold_input import FoldPage, StateSource, fold_page

StreamKey = TypeVar("StreamKey", bound=Hashable)
FoldedState = TypeVar("FoldedState")
EncodedRows = RowChanges[Any, EncodedRow]


class PagedFold:
    """Folds page after page of events in constant memory: the states that a page needs and that
    are not in the bounded memory are loaded from the source.

    `states_max` is how many states of each kind are kept between two pages.
    """

    def __init__(self, source: StateSource, *, states_max: int) -> None:
        self._source = source
        self._states_max = states_max
        self._encoders = {one.name: RowEncoder(one) for one in PROJECTIONS}
        self._fold = Fold((), (), lambda one: self._encoders[one.name].encode)

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
        used = await fold_page(fold, page, self._source)
        _forget(fold.runs, used.runs, self._states_max)
        _forget(fold.sessions, used.sessions, self._states_max)
        for encoder in self._encoders.values():
            encoder.forget()
        return fold.take_rows()


def _forget(states: dict[StreamKey, FoldedState], used: Iterable[StreamKey], most: int) -> None:
    """Keep the `most` states that were used last: a dict is in the order of use."""
    for key in used:
        state = states.pop(key, None)
        if state is not None:
            states[key] = state
    for key in list(states)[: max(0, len(states) - most)]:
        del states[key]

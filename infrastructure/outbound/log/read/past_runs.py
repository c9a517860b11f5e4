"""Runs as they were, of which their rows hold no state any more: folded from their events, and
remembered, because who looks back looks at the moment beside the one before.

The state of a run after so many of its events is the same for ever.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from application.ports.run_bars import ReachedStage
from domain.run.state import Run
from infrastructure.outbound.log.read.fold_input import FoldedRun, runs_folded
from infrastructure.outbound.log.schema.connections import LogConnection

RUNS_REMEMBERED_MAX = 300


class PastRun(NamedTuple):
    """A run as of a position, and how many events it had then."""

    run_id: UUID
    at: int
    version: int


class PastRuns:
    """Those that were folded last."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[UUID, int], FoldedRun] = OrderedDict()

    async def find(
        self, connection: LogConnection, wanted: Iterable[PastRun]
    ) -> dict[tuple[UUID, int], Run]:
        """The states by run and position.

        `CorruptHistory` when an event cannot be folded by this program.
        """
        known = self._known
        found: dict[tuple[UUID, int], Run] = {}
        missing: list[tuple[UUID, int]] = []
        for run_id, at, version in wanted:
            one = known.get((run_id, version))
            if one is None:
                missing.append((run_id, at))
            else:
                known.move_to_end((run_id, version))
                found[run_id, at] = one.run
        folded = await runs_folded(connection, missing)
        known.update(((one.run.run_id, one.run.version), one) for one in folded.values())
        while len(known) > RUNS_REMEMBERED_MAX:
            known.popitem(last=False)
        return found | {key: one.run for key, one in folded.items()}

    def stages(self, run_id: UUID, version: int) -> Sequence[ReachedStage] | None:
        """The stages of a run after so many of its events; None when it is not remembered."""
        one = self._known.get((run_id, version))
        return one.stages if one is not None else None

    def __len__(self) -> int:
        """How many are remembered."""
        return len(self._known)

    def forget(self) -> None:
        """Know nothing, nor what is being read just now: that is noted where nobody looks."""
        self._known = OrderedDict()

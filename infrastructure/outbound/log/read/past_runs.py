"""Past states of runs whose rows no longer hold them: folded from events and cached, because time
travel visits neighboring positions.

The state of a run after a given number of events never changes.
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
    """A run as of position `at`, and its version there."""

    run_id: UUID
    at: int
    version: int


class PastRuns:
    """LRU cache of folded runs."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[UUID, int], FoldedRun] = OrderedDict()

    async def find(
        self, connection: LogConnection, wanted: Iterable[PastRun]
    ) -> dict[tuple[UUID, int], Run]:
        """Return the states by run and position.

        Raises:
            CorruptHistoryError: This program cannot fold an event.
        """
        known = self._known
        found: dict[tuple[UUID, int], Run] = {}
        missing: list[tuple[UUID, int]] = []
        for run_id, at, version in wanted:
            remembered = known.get((run_id, version))
            if remembered is None:
                missing.append((run_id, at))
            else:
                known.move_to_end((run_id, version))
                found[run_id, at] = remembered.run
        folded = await runs_folded(connection, missing)
        known.update(((past.run.run_id, past.run.version), past) for past in folded.values())
        while len(known) > RUNS_REMEMBERED_MAX:
            known.popitem(last=False)
        return found | {key: past.run for key, past in folded.items()}

    def stages(self, run_id: UUID, version: int) -> Sequence[ReachedStage] | None:
        """Return the stages of a run after `version` events, or None if they are not cached."""
        remembered = self._known.get((run_id, version))
        return remembered.stages if remembered is not None else None

    def __len__(self) -> int:
        return len(self._known)

    def forget(self) -> None:
        """Empty the cache. Reads in progress store their results into the discarded object."""
        self._known = OrderedDict()

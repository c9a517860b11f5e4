"""Runs as they were, of which their rows hold no state any more: folded from their events, and
remembered, because who looks back looks at the moment beside the one before.

The state of a run after so many of its events is the same for ever.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from domain.run.state import Run
from infrastructure.outbound.log.read.fold_input import runs_folded
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
        self._known: OrderedDict[tuple[UUID, int], Run] = OrderedDict()

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
            run = known.get((run_id, version))
            if run is None:
                missing.append((run_id, at))
            else:
                known.move_to_end((run_id, version))
                found[run_id, at] = run
        folded = await runs_folded(connection, missing)
        for run in folded.values():
            known[run.run_id, run.version] = run
        while len(known) > RUNS_REMEMBERED_MAX:
            known.popitem(last=False)
        return found | folded

    def __len__(self) -> int:
        """How many are remembered."""
        return len(self._known)

    def forget(self) -> None:
        """Know nothing, nor what is being read just now: that is noted where nobody looks."""
        self._known = OrderedDict()

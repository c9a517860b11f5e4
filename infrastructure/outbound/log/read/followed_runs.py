"""The runs of the newest events, as they are at the last position that this process has seen."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import cast, get_args
from uuid import UUID

from application.log.envelope import RecordedEvent
from domain.run.events import RunEvent
from domain.run.evolve import evolve
from domain.run.state import Run
from domain.values.record import run_id_of
from domain.values.refusals import CorruptHistory

RUNS_MAX = 2_000
_RUN_EVENTS = frozenset(get_args(RunEvent))


class FollowedRuns:
    """Those that something happened to last, each the fold of all its events up to the position.

    A run is known from its first event on; one that was there before, or was forgotten since, is
    not known, whatever happens to it.
    """

    def __init__(self) -> None:
        self._runs: OrderedDict[UUID, Run] = OrderedDict()

    def get(self, run_id: UUID) -> Run | None:
        """The run; None when it is not known."""
        return self._runs.get(run_id)

    def apply(self, recorded: RecordedEvent) -> None:
        """The next event of the log."""
        envelope, event = recorded.envelope, recorded.event
        run_id = run_id_of(envelope.stream)
        if run_id is None or type(event) not in _RUN_EVENTS:
            return
        before = self._runs.get(run_id)
        if (before.version if before is not None else 0) + 1 != envelope.version:
            self._runs.pop(run_id, None)
            return
        try:
            self._store(evolve(before, cast("RunEvent", event), envelope.stamp))
        except CorruptHistory:
            # Whoever reads it from the record is told what is wrong with it.
            self._runs.pop(run_id, None)

    def take(self, runs: Mapping[UUID, Run]) -> None:
        """Runs as they are after events that their own process has folded already."""
        for run in runs.values():
            self._store(run)

    def _store(self, run: Run) -> None:
        self._runs[run.run_id] = run
        self._runs.move_to_end(run.run_id)
        while len(self._runs) > RUNS_MAX:
            self._runs.popitem(last=False)

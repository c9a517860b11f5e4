"""The runs of the newest events, as they are at the last position that this process has seen."""

from collections.abc import Mapping
from uuid import UUID

from application.log.envelope import RecordedEvent
from domain.run.state import Run
from domain.states import States
from domain.values.record import run_id_of
from domain.values.refusals import CorruptHistory

RUNS_MAX = 2_000


class FollowedRuns:
    """Those that something happened to last, each the fold of all its events up to the position.

    A run is known from its first event on; one that was there before, or was forgotten since, is
    not known, whatever happens to it.
    """

    def __init__(self) -> None:
        self._states = States(states_max=RUNS_MAX)

    def get(self, run_id: UUID) -> Run | None:
        """The run; None when it is not known."""
        return self._states.runs.get(run_id)

    def apply(self, recorded: RecordedEvent) -> None:
        """The next event of the log."""
        stream, version = recorded.envelope.stream, recorded.envelope.version
        run_id = run_id_of(stream)
        if run_id is None or self._states.missing([(stream, version)]).runs:
            return
        try:
            self._states.take(stream, recorded.event, recorded.envelope.stamp)
        except CorruptHistory:
            # An event was left out, or it does not fit: whoever reads it from the record is told.
            self._states.runs.pop(run_id, None)
        self._states.shrink()

    def take(self, runs: Mapping[UUID, Run]) -> None:
        """Runs as they are after events that their own process has folded already."""
        known = self._states.runs
        for run_id, run in runs.items():
            known.pop(run_id, None)
            known[run_id] = run
        self._states.shrink()

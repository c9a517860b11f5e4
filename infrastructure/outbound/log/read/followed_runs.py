"""Runs of the newest events, as of the last position that this process has seen."""

from collections.abc import Mapping
from uuid import UUID

from application.log.envelope import RecordedEvent
from domain.run.state import Run
from domain.states import States
from domain.values.record import run_id_of
from domain.values.refusals import CorruptHistoryError

RUNS_MAX = 2_000


class FollowedRuns:
    """The most recently changed runs, each folded from all its events up to the position.

    A run is cached from its first event on, or once the writer of this process hands it over. An
    event of another process does not bring back an older or evicted run.
    """

    def __init__(self) -> None:
        self._states = States(states_max=RUNS_MAX)

    def get(self, run_id: UUID) -> Run | None:
        """Return the run, or None if it is not cached."""
        return self._states.runs.get(run_id)

    def apply(self, recorded: RecordedEvent) -> None:
        """Apply the next event of the log."""
        stream, version = recorded.envelope.stream, recorded.envelope.version
        run_id = run_id_of(stream)
        if run_id is None or self._states.missing([(stream, version)]).runs:
            return
        try:
            self._states.take(stream, recorded.event, recorded.envelope.stamp)
        except CorruptHistoryError:
            # An event is missing or does not fit. Readers get the error when they read the log.
            self._states.runs.pop(run_id, None)
        self._states.shrink()

    def take(self, runs: Mapping[UUID, Run]) -> None:
        """Replace runs by their states after events that this process has already folded."""
        known = self._states.runs
        for run_id, run in runs.items():
            known.pop(run_id, None)
            known[run_id] = run
        self._states.shrink()

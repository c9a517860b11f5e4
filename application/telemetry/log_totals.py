"""What this process has recorded since it started, counted as it is committed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

from application.log.envelope import RecordedEvent
from application.telemetry.duration_totals import REQUEST_SECONDS, RUN_SECONDS, DurationTotals
from domain.run.events import RunEnded, SpawnRefused
from domain.run.state import Run


class LogTotals:
    """Counts by what there is only so much of: types, outcomes, rules, kinds of tokens.

    Several servers of one log count each what it has recorded itself, so that their sum is right.
    """

    def __init__(self) -> None:
        self.events = Counter[str]()
        self.outcomes = Counter[str]()
        self.rules = Counter[str]()
        self.tokens = Counter[str]()
        self.run_seconds = DurationTotals(RUN_SECONDS)
        self.append_seconds = DurationTotals(REQUEST_SECONDS)

    def take(self, events: Sequence[RecordedEvent], runs: Mapping[UUID, Run]) -> None:
        """Events that this process has committed, and the runs as they are after them."""
        for envelope, event in events:
            self.events[envelope.type] += 1
            if isinstance(event, RunEnded):
                run_id = envelope.provenance.run_id
                self._take_end(event, runs.get(run_id) if run_id is not None else None)
            elif isinstance(event, SpawnRefused):
                self.rules[event.rule] += 1

    def _take_end(self, event: RunEnded, run: Run | None) -> None:
        self.outcomes[event.outcome] += 1
        if event.usage is not None:
            self.tokens["input"] += event.usage.input_tokens
            self.tokens["output"] += event.usage.output_tokens
        if run is not None and run.runtime_ms is not None:
            self.run_seconds.add(run.runtime_ms / 1000)

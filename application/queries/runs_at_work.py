"""Running runs: tokens and progress so far, now or at an earlier instant, and the elapsed time."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from application.delivery.priced_usage import priced_usage
from application.log.unit_of_work import UnitOfWork
from application.ports.transcripts import RecordedEntry, Transcripts
from application.queries.views.run import ProgressView, RunMetadataView, RunView
from domain.delivery.transcript import RuntimeReading, usage_of_body
from domain.run.state import Run

KNOWN_RUNS_MAX = 1_000
PAGE_ENTRIES = 500
PAST_ENTRIES_MAX = 10_000
KNOWN_MOMENTS_MAX = 16
SETTLED = timedelta(seconds=30)
_PastRuns = tuple[datetime, frozenset[UUID]]
_KINDS = ("usage", "progress")


@dataclass(frozen=True, slots=True)
class OutputSoFar:
    """Tokens and progress folded from the first `entries` entries of a transcript."""

    entries: int = 0
    reading: RuntimeReading = field(default_factory=RuntimeReading)
    progress: ProgressView | None = None


class OutputReadings:
    """Incremental reader of the tokens and progress of running runs.

    Written entries never change, so each transcript is read from where the last read ended.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[UUID, OutputSoFar] = OrderedDict()
        self._past: OrderedDict[_PastRuns, Mapping[UUID, OutputSoFar]] = OrderedDict()

    async def so_far(
        self, transcripts: Transcripts, runs: Sequence[Run]
    ) -> Mapping[UUID, OutputSoFar]:
        """Return the fold of all entries written by now, for each run."""
        known = {run.run_id: self._known.get(run.run_id, OutputSoFar()) for run in runs}
        last = await transcripts.last_entries(known) if known else {}
        afters = {
            run_id: output.entries
            for run_id, output in known.items()
            if last.get(run_id, 0) > output.entries
        }
        while afters:
            pages = await transcripts.read_on(afters, limit=PAGE_ENTRIES, kinds=_KINDS)
            for run_id in tuple(afters):
                page = pages.get(run_id, ())
                output = known[run_id] = _fold(known[run_id], page)
                if len(page) < PAGE_ENTRIES:
                    del afters[run_id]
                    entries = max(output.entries, last[run_id])
                    known[run_id] = replace(output, entries=entries)
                    self._remember(run_id, known[run_id])
                else:
                    afters[run_id] = output.entries
        return known

    async def used_by(
        self, transcripts: Transcripts, runs: Sequence[Run], instant: datetime, now: datetime
    ) -> Mapping[UUID, OutputSoFar]:
        """Return the tokens that each run had used by an earlier instant.

        Runs with more than their share of `PAST_ENTRIES_MAX` usage entries are left out, so that
        the cost of an answer is bounded. A page asks several questions about one moment, so the
        last answers are cached, unless another server may still write entries of that moment.
        """
        if not runs:
            return {}
        asked = instant, frozenset(run.run_id for run in runs)
        known = self._past.pop(asked, None)
        if known is None:
            known = await _used_by(transcripts, runs, instant)
        if now - instant > SETTLED:
            self._past[asked] = known
            if len(self._past) > KNOWN_MOMENTS_MAX:
                self._past.popitem(last=False)
        return known

    def _remember(self, run_id: UUID, output: OutputSoFar) -> None:
        self._known[run_id] = output
        self._known.move_to_end(run_id)
        if len(self._known) > KNOWN_RUNS_MAX:
            self._known.popitem(last=False)


async def _used_by(
    transcripts: Transcripts, runs: Sequence[Run], instant: datetime
) -> Mapping[UUID, OutputSoFar]:
    share = PAST_ENTRIES_MAX // len(runs)
    afters = {run.run_id: 0 for run in runs}
    # Entries in a buffer may have arrived before the instant: later they count for it.
    await asyncio.gather(*map(transcripts.flushes.flush, afters))
    pages = await transcripts.read_on(afters, limit=share + 1, kinds=("usage",), until=instant)
    return {
        run_id: _fold(OutputSoFar(), pages.get(run_id, ()))
        for run_id in afters
        if len(pages.get(run_id, ())) <= share
    }


def _fold(output: OutputSoFar, entries: Sequence[RecordedEntry]) -> OutputSoFar:
    reading, progress = output.reading, output.progress
    for entry in entries:
        if entry.kind == "usage":
            reading = reading.after(usage_of_body(entry.body))
        else:
            text = str(entry.body.get("text") or "")
            progress = ProgressView(text=text, at=entry.recorded_at)
    last = entries[-1].sequence if entries else output.entries
    return OutputSoFar(last, reading, progress)


async def with_usage(work: UnitOfWork, run: Run, output: OutputSoFar | None) -> Run:
    """Return a running run with its priced tokens so far; any other run as it is."""
    if run.stage != "started" or output is None:
        return run
    return run.changed({"usage": await priced_usage(work, run, output.reading.usages)})


def elapsed_at(run: Run, now: datetime) -> Run:
    """Return a running run with its elapsed time; any other run as it is."""
    if run.stage != "started" or run.started_at is None:
        return run
    seconds = max(0.0, (now - run.started_at).total_seconds())
    return run.changed({"runtime_ms": round(seconds * 1000)})


def with_output(view: RunView | RunMetadataView, output: OutputSoFar) -> RunView | RunMetadataView:
    """Return the view with the number of entries and, if the view shows texts, the progress."""
    changes = {"transcript_entries": output.entries, "progress": output.progress}
    return view.model_copy(
        update={name: changes[name] for name in changes if name in type(view).model_fields}
    )

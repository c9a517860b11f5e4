"""Dependencies of queries."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from application.concurrency.bulkhead import Bulkhead
from application.log.event_log import Tail
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import CandidateReader
from application.ports.event_counts import EventCounts
from application.ports.run_bars import RunBars
from application.ports.run_search import RunSearch
from application.ports.transcripts import Transcripts
from application.queries.access import Access
from application.queries.runs_at_work import OutputReadings


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryServices:
    """Services that queries read from and wait on, assembled by the composition root.

    `candidates` reads hypothetical configurations. `processor_room` limits queries that use a whole
    processor. `closing` returns True while the server stops; `stopped` completes then.
    """

    work: UnitOfWork
    transcripts: Transcripts
    tail: Tail
    access: Access
    candidates: CandidateReader
    processor_room: Bulkhead
    event_counts: EventCounts
    run_bars: RunBars
    run_search: RunSearch
    closing: Callable[[], bool]
    stopped: "asyncio.Future[None]"
    outputs: OutputReadings = field(default_factory=OutputReadings)

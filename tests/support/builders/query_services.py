"""What queries read from, on a log at work."""

import asyncio
from pathlib import Path

from application.concurrency.bulkhead import Bulkhead
from application.ports.transcripts import Transcripts
from application.queries.access import Access
from application.queries.services import QueryServices
from infrastructure.outbound.configuration.candidate import CandidateTexts
from infrastructure.outbound.read_model.event_counts import PostgresEventCounts
from infrastructure.outbound.read_model.run_bars import PostgresRunBars
from infrastructure.outbound.read_model.run_search import PostgresRunSearch
from infrastructure.outbound.transcripts.transcripts import StoredTranscripts
from tests.support.servers.running_log import RunningLog
from tests.support.servers.scripted_hooks import work_with_hooks


async def query_services(
    running: RunningLog, folder: Path, *, block_events: int = 4, noted_events: int = 8
) -> QueryServices:
    """The services of a server, without one. Events are counted in small blocks."""
    work = await work_with_hooks(running, folder)
    transcripts: Transcripts = StoredTranscripts(running.pool, folder)
    return QueryServices(
        work=work,
        transcripts=transcripts,
        tail=running.tail,
        access=Access(work.registry),
        candidates=CandidateTexts(),
        processor_room=Bulkhead(at_once_max=1, calls_max=1),
        event_counts=PostgresEventCounts(
            running.pool, block_events=block_events, noted_events=noted_events
        ),
        run_bars=PostgresRunBars(running.pool, running.log.remembered),
        run_search=PostgresRunSearch(running.pool, running.log.remembered),
        closing=lambda: False,
        stopped=asyncio.get_running_loop().create_future(),
    )

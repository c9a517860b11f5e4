"""What queries read from, and what they wait on."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from application.log.event_log import Tail
from application.log.unit_of_work import UnitOfWork
from application.ports.transcripts import Transcripts
from application.queries.access import Access


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryServices:
    """Put together by the composition root. `closing` says whether the server stops, and `stopped`
    is done then."""

    work: UnitOfWork
    transcripts: Transcripts
    tail: Tail
    access: Access
    closing: Callable[[], bool]
    stopped: "asyncio.Future[None]"

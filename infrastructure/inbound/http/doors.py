"""What the endpoints work with."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from application.access import Access, Tokens
from application.announcing import Announcing
from application.continuing import Continuing
from application.ports.event_log import Tail
from application.ports.transcripts import Transcripts
from application.spawning import Spawning
from application.stopping import Stopping
from application.work import Work


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether requests can be served well, and what is in the way when not."""

    ready: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """Put together by the composition root. `tokens` is None when authentication is off;
    `hosts` are the names by which this server may be addressed, `closing` says whether it stops and
    `stopped` is done then."""

    work: Work
    spawning: Spawning
    continuing: Continuing
    stopping: Stopping
    announcing: Announcing
    transcripts: Transcripts
    tail: Tail
    access: Access
    tokens: Tokens | None
    hosts: frozenset[str]
    readiness: Callable[[], Awaitable[Readiness]]
    closing: Callable[[], bool]
    stopped: "asyncio.Future[None]"

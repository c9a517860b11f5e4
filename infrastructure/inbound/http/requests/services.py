"""What the endpoints work with."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from application.delivery.announce import Announcer
from application.log.event_log import Tail
from application.log.unit_of_work import UnitOfWork
from application.ports.transcripts import Transcripts
from application.queries.access import Access, TokenVerifier
from application.session.continue_session import SessionContinuation
from application.session.stop import StopService
from application.spawn.service import SpawnService


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether requests can be served well, and what is in the way when not."""

    ready: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Put together by the composition root. `tokens` is None when authentication is off;
    `hosts` are the names by which this server may be addressed, `closing` says whether it stops and
    `stopped` is done then."""

    work: UnitOfWork
    spawning: SpawnService
    continuing: SessionContinuation
    stopping: StopService
    announcing: Announcer
    transcripts: Transcripts
    tail: Tail
    access: Access
    tokens: TokenVerifier | None
    hosts: frozenset[str]
    readiness: Callable[[], Awaitable[Readiness]]
    closing: Callable[[], bool]
    stopped: "asyncio.Future[None]"

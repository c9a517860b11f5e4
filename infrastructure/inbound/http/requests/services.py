"""What the endpoints work with."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from application.delivery.announce import Announcer
from application.delivery.webhooks import WebhookSender
from application.queries.access import TokenVerifier
from application.queries.services import QueryServices
from application.session.continue_session import SessionContinuation
from application.session.stop import StopService
from application.session.tool_policy import ToolGuard
from application.spawn.service import SpawnService


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether requests can be served well, and what is in the way when not."""

    ready: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Services(QueryServices):
    """Put together by the composition root. `tokens` is None when authentication is off;
    `hosts` are the names by which this server may be addressed."""

    spawning: SpawnService
    continuing: SessionContinuation
    stopping: StopService
    announcing: Announcer
    sending: WebhookSender
    tool_policy: ToolGuard
    tokens: TokenVerifier | None
    hosts: frozenset[str]
    readiness: Callable[[], Awaitable[Readiness]]

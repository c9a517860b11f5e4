"""What the endpoints work with."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from application.commands.services import CommandServices
from application.delivery.webhooks import WebhookSender
from application.ports.page_tokens import PageTokens
from application.queries.access import TokenVerifier
from application.telemetry.measurements import Measurements


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether requests can be served well, and what is in the way when not."""

    ready: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Services(CommandServices):
    """Put together by the composition root. `tokens` and `page_tokens` are None when
    authentication is off; `hosts` are the names by which this server may be addressed."""

    sending: WebhookSender
    tokens: TokenVerifier | None
    page_tokens: PageTokens | None
    hosts: frozenset[str]
    measurements: Measurements
    readiness: Callable[[], Awaitable[Readiness]]

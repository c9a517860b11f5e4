"""Services for commands, in addition to those for queries."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from application.delivery.announce import Announcer
from application.delivery.effects import EffectWorker
from application.execution.external import ExternalRuns
from application.ports.page_tokens import PageTokens
from application.ports.verifications import LogVerifications
from application.queries.services import QueryServices
from application.session.continue_session import SessionContinuation
from application.session.stop import StopService
from application.session.tool_policy import ToolGuard
from application.spawn.service import SpawnService
from application.telemetry.measurements import Measurements


@dataclass(frozen=True, slots=True)
class Readiness:
    """Readiness of this server to serve requests, and the reasons if it is not ready."""

    ready: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandServices(QueryServices):
    """Services for commands, assembled by the composition root.

    `page_tokens` is None if authentication is off. `serves_page` is False with `noPage`, and
    `page_is_built` if the page was not built before the start.
    """

    spawning: SpawnService
    continuing: SessionContinuation
    stopping: StopService
    announcing: Announcer
    effects: EffectWorker
    external: ExternalRuns
    tool_policy: ToolGuard
    verifications: LogVerifications
    page_tokens: PageTokens | None
    serves_page: bool
    page_is_built: bool
    measurements: Measurements
    readiness: Callable[[], Awaitable[Readiness]]

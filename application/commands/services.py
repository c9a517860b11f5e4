"""What commands work with, beside what queries read from."""

from dataclasses import dataclass

from application.delivery.announce import Announcer
from application.execution.external import ExternalRuns
from application.ports.verifications import LogVerifications
from application.queries.services import QueryServices
from application.session.continue_session import SessionContinuation
from application.session.stop import StopService
from application.session.tool_policy import ToolGuard
from application.spawn.service import SpawnService


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandServices(QueryServices):
    """Put together by the composition root."""

    spawning: SpawnService
    continuing: SessionContinuation
    stopping: StopService
    announcing: Announcer
    external: ExternalRuns
    tool_policy: ToolGuard
    verifications: LogVerifications

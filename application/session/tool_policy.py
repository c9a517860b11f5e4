"""Enforcement of a session's tool policy at the server's endpoints. Denials are recorded."""

from uuid import UUID

from application.log.envelope import Actor
from application.log.event_log import Decision, DecisionContext
from application.log.unit_of_work import UnitOfWork, provenance_of
from domain.plan.tools import permits_tool
from domain.session.events import ToolRefused
from domain.values.record import session_stream
from domain.values.refusals import ToolDenied


class ToolGuard:
    """Guard of tool policies, asked before a session controls others or ends its turn.

    Spawns are checked by the admission rules instead.
    """

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work

    async def require_permission(
        self, run_id: UUID, tool: str, actor: Actor, about: str | None = None
    ) -> None:
        """Record a denial and raise `ToolDenied` if the run's plan does not permit the tool.

        `about` is the run or session that the tool was to act on; None for the caller's own.
        """
        run = await self._work.run(run_id)
        key = run.child_session_key
        if key is None or run.plan is None or permits_tool(run.plan, tool):
            return
        refused = ToolRefused(tool=tool, by=actor.name, about=about)

        def decide(_: DecisionContext) -> Decision[None]:
            return Decision(None, [(session_stream(key), refused)])

        await self._work.submit((session_stream(key),), decide, provenance_of(run, actor))
        raise ToolDenied(tool)

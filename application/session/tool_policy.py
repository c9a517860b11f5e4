"""What the tool policy of a session denies at the doors of the server, on record."""

from uuid import UUID

from application.log.envelope import Actor
from application.log.event_log import Decision, World
from application.log.unit_of_work import UnitOfWork, provenance_of
from domain.plan.tools import permits_tool
from domain.session.events import ToolRefused
from domain.values.record import session_stream
from domain.values.refusals import ToolDenied


class ToolGuard:
    """Asked before a session controls others or ends its turn. A spawn is judged with its other
    rules."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work

    async def must_permit(
        self, run_id: UUID, tool: str, actor: Actor, about: str | None = None
    ) -> None:
        """Raises `ToolDenied`, once that is on record, where the plan of the run has not this tool.
        `about` is the run or the session of which something was asked, None for its own."""
        run = await self._work.run(run_id)
        key = run.child_session_key
        if key is None or run.plan is None or permits_tool(run.plan, tool):
            return
        refused = ToolRefused(tool=tool, by=actor.name, about=about)

        def decide(_: World) -> Decision[None]:
            return Decision(None, [(session_stream(key), refused)])

        await self._work.submit((session_stream(key),), decide, provenance_of(run, actor))
        raise ToolDenied(tool)

"""The lanes: who holds a slot, and who waits."""

from uuid import UUID

from application.ports.registry import LaneState
from application.queries.access import Caller, require_scope
from application.queries.errors import QueryError
from application.queries.paging import LIMIT_MAX
from application.queries.services import QueryServices
from application.queries.views.view import Answer, View
from domain.run.state import Run


class RunningView(View):
    """A run in a slot, and the server that holds it; null what the caller may not see."""

    run_id: UUID | None
    label: str | None
    holder: str | None


class QueuedView(View):
    """A run that waits, its place from 1 on, and for what."""

    run_id: UUID | None
    label: str | None
    place: int
    waits_for: str


class LaneView(View):
    """One lane at one depth."""

    lane: str
    depth: int
    width: int
    running: list[RunningView]
    queued: list[QueuedView]


class LaneListView(View):
    """The lanes that have somebody in them."""

    items: list[LaneView]


async def list_lanes(
    services: QueryServices, caller: Caller, *, limit: int = LIMIT_MAX, at: str | None = None
) -> Answer[LaneListView]:
    """The lanes as they are now. There is one a depth, so one page holds them all."""
    require_scope(caller, "read")
    if at is not None:
        raise QueryError(
            "not_served_yet",
            "this release shows lanes as they are now; leave at out",
            errors=({"pointer": "/query/at", "detail": "not served yet"},),
        )
    configuration = services.work.configurations.current().configuration
    width = configuration.subagent_defaults.max_concurrent
    position, lanes = await services.work.registry.lanes()
    items = [await _lane(services, caller, lane, width) for lane in lanes[:limit]]
    return Answer(LaneListView(items=items), position)


async def _lane(services: QueryServices, caller: Caller, lane: LaneState, width: int) -> LaneView:
    waits_for = "a slot" if len(lane.running) >= width else "to be claimed"
    running = []
    for run in lane.running:
        run_id, label = await _visible_name(services, caller, run)
        holder = run.holder if caller.sees_everything else None
        running.append(RunningView(run_id=run_id, label=label, holder=holder))
    queued = []
    for place, run in enumerate(lane.queued, start=1):
        run_id, label = await _visible_name(services, caller, run)
        queued.append(QueuedView(run_id=run_id, label=label, place=place, waits_for=waits_for))
    return LaneView(lane=lane.lane, depth=lane.depth, width=width, running=running, queued=queued)


async def _visible_name(
    services: QueryServices, caller: Caller, run: Run
) -> tuple[UUID | None, str | None]:
    """Which run it is; a run that the caller may not see only takes its place."""
    if not await services.access.covers_run(caller, run):
        return None, None
    return run.run_id, run.label

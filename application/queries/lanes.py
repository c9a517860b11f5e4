"""The lanes: who holds a slot, and who waits."""

from uuid import UUID

from application.ports.registry import LanePlace, LaneState
from application.queries.access import Caller, require_scope
from application.queries.as_of import resolve_as_of
from application.queries.configuration import configuration_in_force
from application.queries.paging import LIMIT_MAX
from application.queries.services import QueryServices
from application.queries.views.view import Answer, View


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
    """One lane at one depth. `width` is by the configuration in force; null when that was
    erased."""

    lane: str
    depth: int
    width: int | None
    running: list[RunningView]
    queued: list[QueuedView]


class LaneListView(View):
    """The lanes that have somebody in them."""

    items: list[LaneView]


async def list_lanes(
    services: QueryServices, caller: Caller, *, limit: int = LIMIT_MAX, at: str | None = None
) -> Answer[LaneListView]:
    """The lanes as they were then, with the width that was in force. There is one a depth, so one
    page holds them all."""
    require_scope(caller, "read")
    moment = await resolve_as_of(services, caller, at)
    lanes = await services.work.registry.lanes(at=moment.position)
    configuration = await configuration_in_force(services.work, moment.position)
    width = configuration.subagent_defaults.max_concurrent if configuration is not None else None
    known: dict[str, bool] = {}
    items = [await _lane(services, caller, lane, width, known) for lane in lanes[:limit]]
    return Answer(LaneListView(items=items), moment.position)


async def _lane(
    services: QueryServices,
    caller: Caller,
    lane: LaneState,
    width: int | None,
    known: dict[str, bool],
) -> LaneView:
    is_full = width is None or len(lane.running) >= width
    waits_for = "a slot" if is_full else "to be claimed"
    running = []
    for run in lane.running:
        run_id, label = await _visible_name(services, caller, run, known)
        holder = run.holder if caller.sees_everything else None
        running.append(RunningView(run_id=run_id, label=label, holder=holder))
    queued = []
    for place, run in enumerate(lane.queued, start=1):
        run_id, label = await _visible_name(services, caller, run, known)
        queued.append(QueuedView(run_id=run_id, label=label, place=place, waits_for=waits_for))
    return LaneView(lane=lane.lane, depth=lane.depth, width=width, running=running, queued=queued)


async def _visible_name(
    services: QueryServices, caller: Caller, place: LanePlace, known: dict[str, bool]
) -> tuple[UUID | None, str | None]:
    """Which run it is; a run that the caller may not see only takes its place."""
    if not await services.access.covers_child(caller, place.run_id, place.requester, known):
        return None, None
    return place.run_id, place.label

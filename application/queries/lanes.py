"""Lanes: the runs that hold a slot, and the queue."""

from uuid import UUID

from pydantic import Field

from application.ports.registry import LanePlace, LaneState
from application.queries.access import Caller
from application.queries.as_of import resolve_as_of
from application.queries.command import COMMAND_ITEMS_MAX, Command
from application.queries.configuration import configuration_in_force
from application.queries.operation import ReadAsOf, operation
from application.queries.paging import LIMIT_MAX
from application.queries.services import QueryServices
from application.queries.views.view import Answer, View


class RunningView(View):
    """A run that holds a slot, and the server that executes it. Fields that the caller may not see
    are null."""

    run_id: UUID | None
    label: str | None
    holder: str | None


class QueuedView(View):
    """A queued run, its place in the queue (from 1), and the reason why it waits."""

    run_id: UUID | None
    label: str | None
    place: int
    waits_for: str


class LaneView(View):
    """A lane at one depth. `width` follows the configuration in force; null if that was erased."""

    lane: str
    depth: int
    width: int | None
    running: list[RunningView]
    queued: list[QueuedView]


class LaneListView(View):
    """The lanes that are not empty."""

    items: list[LaneView]


class ListLanes(ReadAsOf):
    """Parameters of `list_lanes`."""

    limit: int = Field(LIMIT_MAX, ge=1, le=LIMIT_MAX, description="Maximum number of items.")


@operation(
    "GET",
    "/v1/lanes",
    name="listLanes",
    tag="agents",
    scope="read",
    summary="List the lanes with their running and queued runs",
    description=(
        "Returns each lane's width, the runs that hold a slot, and the queued runs with their"
        " places and wait reasons. The width applies per depth, so that a waiting parent"
        " never starves its child. With `at`, it is the width in force at that moment."
    ),
    errors=("not_found",),
    command=Command(
        "lane list",
        "Show the running and queued runs of each lane.",
        options={"limit": None},
        limit=COMMAND_ITEMS_MAX,
    ),
)
async def list_lanes(
    services: QueryServices, caller: Caller, query: ListLanes
) -> Answer[LaneListView]:
    """Return the lanes as of `at`, with the width in force then.

    There is one lane per depth, so a single page holds them all.
    """
    moment = await resolve_as_of(services, caller, query.at)
    lanes = await services.work.registry.lanes(at=moment.position)
    configuration = await configuration_in_force(services.work, moment.position)
    width = configuration.subagent_defaults.max_concurrent if configuration is not None else None
    known: dict[str, bool] = {}
    items = [await _lane(services, caller, lane, width, known) for lane in lanes[: query.limit]]
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
    """Return the id and label of a run; None for a run that the caller may not see."""
    if not await services.access.covers_child(caller, place.run_id, place.requester, known):
        return None, None
    return place.run_id, place.label

"""Moments of the log: maps between instants and positions, with the events around them."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from pydantic import Field

from application.log.envelope import RecordedEvent
from application.queries.access import Caller
from application.queries.as_of import resolve_as_of
from application.queries.errors import QueryError
from application.queries.operation import ReadAsOf, operation
from application.queries.services import QueryServices
from application.queries.views.view import Answer, View

AROUND_DEFAULT = 5
AROUND_MAX = 50


class NearEventView(View):
    """An event without its payload."""

    position: int
    type: str
    recorded_at: datetime
    run_id: UUID | None
    tree: str | None


class MomentView(View):
    """A position of the log and the time when its event was recorded; null before the first event.
    `appendLast` is the last position of its append. `configRevision` is the configuration revision
    in force; null before the first one, and for tokens that do not see the whole log. `before` are
    the events up to the position, `after` those after it, both in order, without events that the
    token may not see."""

    position: int
    recorded_at: datetime | None
    append_last: int | None
    config_revision: int | None
    before: list[NearEventView]
    after: list[NearEventView]


class GetMoment(ReadAsOf):
    """Parameters of `get_moment`."""

    around: int = Field(
        AROUND_DEFAULT, ge=0, le=AROUND_MAX, description="Maximum number of events on each side."
    )


@operation(
    "GET",
    "/v1/moments",
    name="getMoment",
    tag="log",
    scope="read",
    summary="Show the position, time and neighboring events of a moment",
    description=(
        "Returns the position of an instant, the instant at which a position was recorded, the"
        " configuration revision in force then, and the events on both sides."
    ),
    command="of the page",
)
async def get_moment(
    services: QueryServices, caller: Caller, query: GetMoment
) -> Answer[MomentView]:
    """Return the moment `at`, with up to `around` events on each side."""
    if caller.run_id is not None:
        raise QueryError("not_permitted", "a child's token may only read the events of one run")
    head = (await resolve_as_of(services, caller, None)).position
    position = (await resolve_as_of(services, caller, query.at)).position
    log, around = services.work.log, query.around
    first = max(0, position - max(around, 1))
    before = await log.read(after=first, limit=position - first, until=position) if position else ()
    after = await log.read(after=position, limit=around, until=head) if around else ()
    here = before[-1].envelope if before else None
    revision = None
    if caller.sees_everything:
        (counts,) = await services.event_counts.up_to([position])
        # Revisions are numbered from 1, so their count is the number of the newest.
        revision = counts.get("ConfigurationActivated")
    view = MomentView(
        position=position,
        recorded_at=here.recorded_at if here is not None else None,
        append_last=here.append_last if here is not None else None,
        config_revision=revision,
        before=_near_events(caller, before[-around:] if around else ()),
        after=_near_events(caller, after),
    )
    return Answer(view, position)


def _near_events(caller: Caller, events: Sequence[RecordedEvent]) -> list[NearEventView]:
    return [
        NearEventView.from_source(
            envelope, run_id=envelope.provenance.run_id, tree=envelope.provenance.correlation
        )
        for envelope in (recorded.envelope for recorded in events)
        if _is_visible(caller, envelope.provenance.correlation)
    ]


def _is_visible(caller: Caller, tree: str | None) -> bool:
    return caller.sees_everything or (tree is not None and caller.acts_for(tree))

"""Moments of the log: which position an instant is, which instant a position, and what is there."""

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
    """A position of the log and when its event was recorded: null before all events. `appendLast`
    is the last position of the append that it is of, `configRevision` the number of the
    configuration in force then, null before the first one and for who does not see all of the log.
    `before` are the events up to the position, `after` those behind it, both in order; of what
    others did a token sees nothing."""

    position: int
    recorded_at: datetime | None
    append_last: int | None
    config_revision: int | None
    before: list[NearEventView]
    after: list[NearEventView]


class GetMoment(ReadAsOf):
    """Parameters of `get_moment`."""

    around: int = Field(
        AROUND_DEFAULT, ge=0, le=AROUND_MAX, description="How many events on each side."
    )


@operation(
    "GET",
    "/v1/moments",
    name="getMoment",
    tag="log",
    scope="read",
    summary="A moment of the log",
    description=(
        "Which position an instant is, and at which instant a position was recorded, with the"
        " number of the configuration in force then and the events on both sides of it."
    ),
    command="of the page",
)
async def get_moment(
    services: QueryServices, caller: Caller, query: GetMoment
) -> Answer[MomentView]:
    """Return the moment `at` with up to `around` events on each side of it."""
    if caller.run_id is not None:
        raise QueryError("not_permitted", "a child's token reads events of one run, not of the log")
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
        # The first one has the number 1, and each later one the next.
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
        for envelope in (one.envelope for one in events)
        if _is_visible(caller, envelope.provenance.correlation)
    ]


def _is_visible(caller: Caller, tree: str | None) -> bool:
    return caller.sees_everything or (tree is not None and caller.acts_for(tree))

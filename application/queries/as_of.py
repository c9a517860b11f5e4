"""As of when a question is: positions of the log, instants, times ago, and moments of runs."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from application.queries.access import Caller
from application.queries.errors import QueryError, invalid_value
from application.queries.services import QueryServices
from application.queries.stage_reference import position_of_stage
from domain.values.moments import Moment, RunStageName, parse_moment

FUTURE_SECONDS_MAX = 5


@dataclass(frozen=True, slots=True)
class AsOf:
    """The position an answer is true at; `now` when none was asked for. `instant` is the one that
    was asked for, if one was."""

    position: int
    now: bool
    instant: datetime | None = None


async def resolve_as_of(
    services: QueryServices, caller: Caller, at: str | None, *, pointer: str = "/query/at"
) -> AsOf:
    """The position that `at` means to this caller. `QueryError`, with the pointer, for what means
    none, or lies ahead, and for a moment of a run that it may not see or that has not come."""
    try:
        return await _resolved(services, caller, at)
    except QueryError as error:
        if error.code != "invalid_request":
            raise
        raise invalid_value(pointer, error.detail) from None


async def _resolved(services: QueryServices, caller: Caller, at: str | None) -> AsOf:
    log = services.work.log
    if at is None:
        return AsOf(await log.head(), now=True)
    now = log.now()
    moment = read_moment(at, now)
    # What was followed here is on record.
    if isinstance(moment, int) and moment <= services.tail.position:
        return AsOf(moment, now=False)
    head = await log.head()
    if isinstance(moment, int):
        if moment > head:
            raise QueryError("invalid_request", f"the log ends at pos:{head}; ask for that or less")
        return AsOf(moment, now=False)
    if isinstance(moment, RunStageName):
        position = await position_of_stage(services, caller, moment.text, head)
        return AsOf(position, now=False)
    instant = moment
    ahead = instant - now
    if ahead > timedelta(seconds=FUTURE_SECONDS_MAX):
        raise QueryError("invalid_request", "that instant lies ahead; ask for the past or for now")
    if ahead > timedelta(0):
        return AsOf(head, now=True, instant=now)
    position = min(await services.work.registry.position_at(instant), head)
    return AsOf(position, now=False, instant=instant)


async def resolve_range(
    services: QueryServices, caller: Caller, since: str | None, until: str | None
) -> tuple[AsOf | None, AsOf]:
    """The moments that the range of a body begins and ends at; without a first one it begins with
    the log. `QueryError` as for one moment, and when the end lies before the beginning."""
    first = None
    if since is not None:
        first = await resolve_as_of(services, caller, since, pointer="/from")
    last = await resolve_as_of(services, caller, until, pointer="/to")
    if since is None or first is None:
        return None, last
    begins, ends = first.instant, last.instant
    is_backwards = first.position > last.position
    # Before the first event all instants are at one position.
    if is_backwards or (begins is not None and ends is not None and ends < begins):
        raise invalid_value("/to", f"the range ends at {until}, before it begins: {since}")
    return first, last


def read_moment(text: str, now: datetime) -> Moment:
    """Return the moment that a parameter means, not looked up yet. `QueryError` for no moment."""
    try:
        return parse_moment(text, now)
    except ValueError as error:
        raise QueryError("invalid_request", str(error)) from None

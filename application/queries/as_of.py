"""Resolves moments to log positions: positions, instants, times ago, and stages of runs."""

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
    """The position at which an answer is true.

    `now` is True if no moment was requested. `instant` is the requested instant, if one was given.
    """

    position: int
    now: bool
    instant: datetime | None = None


async def resolve_as_of(
    services: QueryServices, caller: Caller, at: str | None, *, pointer: str = "/query/at"
) -> AsOf:
    """Return the position that `at` means to this caller.

    Args:
        services: Log and registry to resolve the position with.
        caller: Decides which runs a stage reference may name.
        at: A moment in any form, or None for now.
        pointer: JSON pointer of the value, for error messages.

    Raises:
        QueryError: The text is not a moment, the moment is in the future, or it names a stage of a
            run that the caller may not see or that the run has not reached.
    """
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
    # Positions up to the tail are recorded, so the head need not be read.
    if isinstance(moment, int) and moment <= services.tail.position:
        return AsOf(moment, now=False)
    head = await log.head()
    if isinstance(moment, int):
        if moment > head:
            raise QueryError(
                "invalid_request",
                f"the log ends at pos:{head}; use that position or an earlier one",
            )
        return AsOf(moment, now=False)
    if isinstance(moment, RunStageName):
        position = await position_of_stage(services, caller, moment.text, head)
        return AsOf(position, now=False)
    instant = moment
    ahead = instant - now
    if ahead > timedelta(seconds=FUTURE_SECONDS_MAX):
        raise QueryError(
            "invalid_request", ("that instant is in the future; use a past one, or omit it for now")
        )
    if ahead > timedelta(0):
        return AsOf(head, now=True, instant=now)
    position = min(await services.work.registry.position_at(instant), head)
    return AsOf(position, now=False, instant=instant)


async def instant_of(services: QueryServices, moment: AsOf) -> datetime | None:
    """Return the instant of an earlier moment, up to which entries of transcripts belong to it: the
    given one, or else that of the event at its position. None for now."""
    if moment.now:
        return None
    return moment.instant or await services.work.log.recorded_at(moment.position)


async def resolve_range(
    services: QueryServices, caller: Caller, since: str | None, until: str | None
) -> tuple[AsOf | None, AsOf]:
    """Return the first and last moments of a range given in a body; None means the start of the
    log.

    Raises:
        QueryError: As for `resolve_as_of`, or if the range ends before it begins.
    """
    first = None
    if since is not None:
        first = await resolve_as_of(services, caller, since, pointer="/from")
    last = await resolve_as_of(services, caller, until, pointer="/to")
    if since is None or first is None:
        return None, last
    begins, ends = first.instant, last.instant
    is_backwards = first.position > last.position
    # All instants before the first event share one position, so the instants are compared too.
    if is_backwards or (begins is not None and ends is not None and ends < begins):
        raise invalid_value("/to", f"the range ends at {until}, before its beginning {since}")
    return first, last


def read_moment(text: str, now: datetime) -> Moment:
    """Return the moment that a parameter means, without looking it up.

    Raises:
        QueryError: The text is not a moment.
    """
    try:
        return parse_moment(text, now)
    except ValueError as error:
        raise QueryError("invalid_request", str(error)) from None

"""As of when a question is: positions of the log, instants, times ago, and moments of runs."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from application.queries.access import Caller
from application.queries.errors import QueryError, invalid_value
from application.queries.services import QueryServices
from application.queries.stage_reference import STAGE_PREFIX, position_of_stage

FUTURE_SECONDS_MAX = 5
AGO_DAYS_MAX = 36_500
AS_OF_CHARACTERS_MAX = 256
_POSITION = re.compile(r"pos:([0-9]{1,18})")
_AGO = re.compile(r"-([0-9]{1,10})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})",
    re.IGNORECASE,
)
_FORMS = (
    "pos:N, an RFC 3339 instant with an offset, a time ago such as -5m (s, m, h or d), or a moment"
    " of a run such as run:<name>@started"
)


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
    head = await services.work.log.head()
    if at is None:
        return AsOf(head, now=True)
    match = _POSITION.fullmatch(at)
    if match is not None:
        position = int(match.group(1))
        if position > head:
            raise QueryError("invalid_request", f"the log ends at pos:{head}; ask for that or less")
        return AsOf(position, now=False)
    if at.startswith(STAGE_PREFIX):
        position = await position_of_stage(services, caller, at, head)
        return AsOf(position, now=False)
    now = datetime.now(UTC)
    instant = _instant_ago(at, now) if at.startswith("-") else instant_of(at, "at")
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
    begins, ends = _instant_or_none(since), _instant_or_none(until)
    is_backwards = first.position > last.position
    # Before the first event all instants are at one position.
    if is_backwards or (begins is not None and ends is not None and ends < begins):
        raise invalid_value("/to", f"the range ends at {until}, before it begins: {since}")
    return first, last


def _instant_or_none(at: str | None) -> datetime | None:
    if at is None or _POSITION.fullmatch(at) or at.startswith(STAGE_PREFIX):
        return None
    return _instant_ago(at, datetime.now(UTC)) if at.startswith("-") else instant_of(at, "at")


def _instant_ago(text: str, now: datetime) -> datetime:
    match = _AGO.fullmatch(text)
    if match is None:
        raise _no_as_of()
    try:
        ago = timedelta(**{_UNITS[match.group(2)]: int(match.group(1))})
    except OverflowError:
        ago = timedelta.max
    if ago > timedelta(days=AGO_DAYS_MAX):
        raise QueryError("invalid_request", f"a moment may be {AGO_DAYS_MAX} days ago at most")
    return now - ago


def instant_of(text: str, name: str) -> datetime:
    """An RFC 3339 instant; `QueryError` with the parameter's name for anything else."""
    try:
        if not _INSTANT.fullmatch(text):
            raise ValueError(text)
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        if name == "at":
            raise _no_as_of() from None
        raise QueryError(
            "invalid_request", f"{name} must be an RFC 3339 instant with an offset"
        ) from None


def _no_as_of() -> QueryError:
    return QueryError("invalid_request", f"a moment must be {_FORMS}")

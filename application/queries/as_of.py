"""As of when a question is: positions of the log, and instants."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from application.queries.errors import QueryError
from application.queries.services import QueryServices

FUTURE_SECONDS_MAX = 5
_POSITION = re.compile(r"pos:([0-9]{1,18})")
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class AsOf:
    """The position an answer is true at; `now` when none was asked for."""

    position: int
    now: bool


async def resolve_as_of(services: QueryServices, at: str | None) -> AsOf:
    """The position that `at` means. `QueryError` for what is no
    position, or lies ahead."""
    head = await services.work.log.head()
    if at is None:
        return AsOf(head, now=True)
    match = _POSITION.fullmatch(at)
    if match is not None:
        position = int(match.group(1))
        if position > head:
            raise QueryError("invalid_request", f"the log ends at pos:{head}; ask for that or less")
        return AsOf(position, now=position == head)
    instant = instant_of(at, "at")
    ahead = instant - datetime.now(UTC)
    if ahead > timedelta(seconds=FUTURE_SECONDS_MAX):
        raise QueryError("invalid_request", "that instant lies ahead; ask for the past or for now")
    if ahead > timedelta(0):
        return AsOf(head, now=True)
    return AsOf(min(await services.work.registry.position_at(instant), head), now=False)


def instant_of(text: str, name: str) -> datetime:
    """An RFC 3339 instant; `QueryError` with the parameter's name for anything else."""
    try:
        if not _INSTANT.fullmatch(text):
            raise ValueError(text)
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        forms = "pos:N or an RFC 3339 instant" if name == "at" else "an RFC 3339 instant"
        raise QueryError("invalid_request", f"{name} must be {forms} with an offset") from None

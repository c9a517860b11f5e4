"""Context and response of a command."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from application.log.event_log import Reservation, StoredAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """Metadata of the request that issued a command.

    Attributes:
        reservation: The idempotency key, if the request has one.
        traceparent: The W3C trace context, if the request has a valid one.
        is_there: Returns True while the caller waits for the answer.
        token: The caller's token; empty if authentication is off.
        if_match: The version that the request was made for; None for any.
    """

    reservation: Reservation | None = None
    traceparent: str | None = None
    is_there: Callable[[], bool] = lambda: True
    token: str = field(default="", repr=False)
    if_match: int | None = None


class CommandResponse(NamedTuple):
    """The answer of a command, and the position at which it is true; None means the current one."""

    answer: StoredAnswer
    position: int | None = None


_TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


def known_traceparent(given: object) -> str | None:
    """Return a W3C trace context; None if it is malformed."""
    text = given.strip().lower() if isinstance(given, str) else ""
    return text if _TRACEPARENT.fullmatch(text) else None

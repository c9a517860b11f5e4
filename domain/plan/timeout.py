"""Run timeout, in seconds."""

import math
from typing import Literal

from domain.configuration.agents import RUN_TIMEOUT_SECONDS_MAX

RunTimeoutSource = Literal["argument", "defaults"]


def run_timeout_seconds(argument: object, configured: object = None) -> int:
    """Return the run timeout in whole seconds; 0 means no limit.

    The argument counts if it is a finite number, else the configured value, else 0. The number is
    rounded down and clamped to 0 to 2,147,000 (24 days).
    """
    for given in (argument, configured):
        if (number := _finite(given)) is not None:
            return max(0, min(RUN_TIMEOUT_SECONDS_MAX, math.floor(number)))
    return 0


def run_timeout_warnings(argument: object, configured: object = None) -> tuple[str, ...]:
    """Return warnings if the effective number was capped, or became "no limit" without being 0."""
    given = next((value for value in map(_finite, (argument, configured)) if value is not None), 0)
    if given < 0 or 0 < given < 1:
        shown = f"{given:g}" if isinstance(given, float) or abs(given) < 10**15 else "that"
        return (
            f"runTimeoutSeconds {shown} was rounded down to 0, which means no limit. Request 1"
            " or more for a limit.",
        )
    if given < RUN_TIMEOUT_SECONDS_MAX + 1:
        return ()
    return (
        f"runTimeoutSeconds was reduced to {RUN_TIMEOUT_SECONDS_MAX}, the maximum; 0 means no"
        " limit.",
    )


def run_timeout_source(argument: object) -> RunTimeoutSource:
    """Return `argument` if the argument is a finite number, else `defaults`."""
    return "argument" if _finite(argument) is not None else "defaults"


def _finite(given: object) -> int | float | None:
    """Return the number if it is finite; booleans are not numbers."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    # `isfinite` fails on integers too large for a float.
    return None if isinstance(given, float) and not math.isfinite(given) else given

"""How long a run may take."""

import math
from typing import Literal

from domain.configuration.agents import RUN_TIMEOUT_SECONDS_MAX

RunTimeoutSource = Literal["argument", "defaults"]


def run_timeout_seconds(argument: object, configured: object = None) -> int:
    """Whole seconds; 0 is without limit.

    The argument counts when it is a finite number, else the configured one, else 0. Numbers are
    rounded down; below 0 is 0, over 2 147 000 (24 days) is that.
    """
    for given in (argument, configured):
        if (number := _finite(given)) is not None:
            return max(0, min(RUN_TIMEOUT_SECONDS_MAX, math.floor(number)))
    return 0


def run_timeout_warnings(argument: object, configured: object = None) -> tuple[str, ...]:
    """What the caller is told when the number that counts is more than there can be, or was made
    no limit though it is not 0."""
    given = next((one for one in map(_finite, (argument, configured)) if one is not None), 0)
    if given < 0 or 0 < given < 1:
        shown = f"{given:g}" if isinstance(given, float) or abs(given) < 10**15 else "that"
        return (
            f"runTimeoutSeconds {shown} was made 0, which is without limit: whole seconds count,"
            " rounded down. Ask for 1 or more to have a limit.",
        )
    if given < RUN_TIMEOUT_SECONDS_MAX + 1:
        return ()
    return (
        f"A run may take {RUN_TIMEOUT_SECONDS_MAX} seconds at most, which is its limit now;"
        " runTimeoutSeconds: 0 is without limit.",
    )


def run_timeout_source(argument: object) -> RunTimeoutSource:
    """Whose number it is: the argument's when that counts, else the configuration's."""
    return "argument" if _finite(argument) is not None else "defaults"


def _finite(given: object) -> int | float | None:
    """Truth values are no numbers."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    # An integer may be too large for the question.
    return None if isinstance(given, float) and not math.isfinite(given) else given

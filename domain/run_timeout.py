"""How long a run may take."""

import math

RUN_TIMEOUT_SECONDS_MAX = 2_147_000


def run_timeout_seconds(argument: object, configured: object = None) -> int:
    """Whole seconds; 0 is without limit.

    The argument counts when it is a finite number, else the configured one, else 0. Numbers are
    rounded down; below 0 is 0, over 2 147 000 (24 days) is that.
    """
    for given in (argument, configured):
        if isinstance(given, bool) or not isinstance(given, int | float):
            continue
        if isinstance(given, float) and not math.isfinite(given):
            continue
        return max(0, min(RUN_TIMEOUT_SECONDS_MAX, math.floor(given)))
    return 0

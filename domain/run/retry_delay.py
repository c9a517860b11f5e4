"""How long after a failure the next attempt comes, of an undo or of a hook."""

RETRY_SECONDS_MAX = 3600
"""Of an undo. A hook has its maximum in the configuration."""


def retry_after_seconds(failures: int, seconds_max: int = RETRY_SECONDS_MAX) -> int:
    """Doubles with each failure: 1, 2, 4 … seconds. `failures` are those before the last one."""
    # The shift is bounded, or it would become a number without end.
    return min(1 << min(failures, 12), seconds_max)

"""Stages of a run and limits of the waits for them."""

from typing import Any, Literal

from spawnlog.core.errors import InvalidSettingError, RunFailedError

WaitUntil = Literal["started", "ended", "announced", "archived"]
POLL_SECONDS = 30.0
MESSAGE_POLL_SECONDS = 0.5
PAUSE_SECONDS_MIN = 0.25
PAUSE_SECONDS_MAX = 5.0
LATE_SECONDS_MAX = 1.0
"""Extra seconds that an answer may take after a wait has timed out."""

ABSENT_SECONDS_MAX = 60.0
"""Maximum time in seconds that a server may be away, as in a restart, before a wait gives up."""

_REACHED: dict[WaitUntil, frozenset[str]] = {
    "started": frozenset({"started", "ended", "announced", "archived", "refused"}),
    "ended": frozenset({"ended", "announced", "archived", "refused"}),
    "announced": frozenset({"announced", "archived", "refused"}),
    "archived": frozenset({"archived", "refused"}),
}


def has_reached(stage: object, until: WaitUntil) -> bool:
    """Return True if a run at this stage has reached `until`, or was refused and never will."""
    return stage in _REACHED[until]


def require_wait_seconds(seconds: float | None) -> None:
    """Raise InvalidSetting if a timeout is negative or not a number."""
    if seconds is not None and not seconds >= 0:
        raise InvalidSettingError("seconds must be 0 or more, or None to wait without limit")


def require_result(run: Any) -> str | None:
    """Return the result text of a run that is over.

    Returns:
        The text; None if the view has none, as for a token without the scope `content`.

    Raises:
        RunFailedError: The run was refused, or its outcome is not `success`.
    """
    if run.stage != "refused" and run.outcome == "success":
        return getattr(run, "result_text", None)
    reason = f": {run.error}" if run.error else ""
    raise RunFailedError(f"run {run.run_id} ended as {run.status}{reason}", run)


def continuing_run_id(run: Any) -> str | None:
    """Return the id of the run that replaced this one, if it yielded or was steered; else None."""
    if run.continued_by is not None and run.announcement.state == "skipped":
        return str(run.continued_by)
    return None

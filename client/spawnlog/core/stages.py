"""How far a run has come, and how long waits for it last."""

from typing import Any, Literal

from spawnlog.core.errors import InvalidSetting, UnsuccessfulRun

WaitUntil = Literal["started", "ended", "announced", "archived"]
POLL_SECONDS = 30.0
MESSAGE_POLL_SECONDS = 0.5
PAUSE_SECONDS_MIN = 0.25
PAUSE_SECONDS_MAX = 5.0
LATE_SECONDS_MAX = 1.0
"""An answer is waited for this much longer than a wait was to take."""

ABSENT_SECONDS_MAX = 60.0
"""How long a server may be away, as in a restart, before the wait is given up."""

_REACHED: dict[WaitUntil, frozenset[str]] = {
    "started": frozenset({"started", "ended", "announced", "archived", "refused"}),
    "ended": frozenset({"ended", "announced", "archived", "refused"}),
    "announced": frozenset({"announced", "archived", "refused"}),
    "archived": frozenset({"archived", "refused"}),
}


def has_reached(stage: object, until: WaitUntil) -> bool:
    """Return True if a run at this stage has come that far, or never will because it was
    refused."""
    return stage in _REACHED[until]


def require_wait_seconds(seconds: float | None) -> None:
    """Refuse a wait that could not end."""
    if seconds is not None and not seconds >= 0:
        raise InvalidSetting("seconds must be 0 or more, or None to wait without limit")


def require_result(run: Any) -> str | None:
    """Return the result of a run that is over. Raise UnsuccessfulRun for any end but success."""
    if run.stage != "refused" and run.outcome == "success":
        return getattr(run, "result_text", None)
    reason = f": {run.error}" if run.error else ""
    raise UnsuccessfulRun(f"run {run.run_id} ended as {run.status}{reason}", run)


def continuing_run_id(run: Any) -> str | None:
    """Return the run that took the place of this one, which yielded or was steered."""
    if run.continued_by is not None and run.announcement.state == "skipped":
        return str(run.continued_by)
    return None

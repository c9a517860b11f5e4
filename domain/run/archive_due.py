"""When a run is put away."""

from datetime import datetime, timedelta

from domain.run.state import Run


def archive_due(run: Run, announced_at: datetime) -> datetime | None:
    """When an announced run is archived: at once for `cleanup: "delete"`, else a configured time
    after its end and never before it is announced; None when archiving is switched off.

    A session that lives on (mode `session`) is archived at once when it was stopped, else not. One
    that was closed meanwhile is archived at once."""
    if run.put_away_from is not None:
        return announced_at
    if run.options.mode == "session":
        return announced_at if run.outcome == "stopped" else None
    if run.cleanup == "delete":
        return announced_at
    if run.plan is None or run.plan.archive_after_minutes == 0 or run.ended_at is None:
        return None
    due = run.ended_at + timedelta(minutes=run.plan.archive_after_minutes)
    return max(due, announced_at)

"""How going on with a session changes its runs. It only grows."""

from typing import assert_never

from domain.run.continuation_events import (
    ArchiveScheduled,
    ContinuationEvent,
    ContinuationPlanned,
    MessageReceived,
    RunContinued,
)
from domain.run.evolve_hooks import configured, passed_on
from domain.run.state import Run
from domain.stamp import Stamp


def continuation_changes(run: Run, event: ContinuationEvent, stamp: Stamp) -> dict[str, object]:
    """What such an event changes in a run that is there."""
    match event:
        case MessageReceived():
            return {}
        case ContinuationPlanned():
            return _planned(event)
        case RunContinued():
            return _continued(run, event)
        case ArchiveScheduled():
            return _scheduled(run, stamp)
        case _:
            assert_never(event)


def _planned(event: ContinuationPlanned) -> dict[str, object]:
    changes: dict[str, object] = {
        "role": event.role,
        "control_scope": event.control_scope,
        "plan": event.plan,
        "warnings": event.warnings,
    }
    if event.direct_delivery:
        changes["direct_delivery"] = True
    if event.hooks:
        changes["hooks"] = configured(event.hooks)
    return changes


def _continued(run: Run, event: RunContinued) -> dict[str, object]:
    """The last run of a session is put away first; its receivers are told of the session's end."""
    changes: dict[str, object] = {"continued_by": event.run_id, "archive_at": None}
    if run.hooks:
        changes["hooks"] = passed_on(run.hooks)
    return changes


def _scheduled(run: Run, stamp: Stamp) -> dict[str, object]:
    changes: dict[str, object] = {"put_away_from": stamp.recorded_at}
    if run.stage == "announced":
        changes["archive_at"] = stamp.recorded_at
    return changes

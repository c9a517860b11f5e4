"""How going on with a session changes its runs. It only grows."""

from typing import assert_never

from domain.run.continuation_events import (
    ArchiveScheduled,
    ContinuationEvent,
    ContinuationPlanned,
    MessageReceived,
    RunContinued,
)
from domain.run.evolve_hooks import hand_over_hooks, initial_hook_states
from domain.run.state import Run
from domain.stamp import Stamp


def continuation_changes(run: Run, event: ContinuationEvent, stamp: Stamp) -> dict[str, object]:
    """What such an event changes in a run that is there."""
    match event:
        case MessageReceived():
            return {}
        case ContinuationPlanned():
            return _plan_changes(event)
        case RunContinued():
            return _continuation_changes(run, event)
        case ArchiveScheduled():
            return _schedule_changes(run, stamp)
        case _:
            assert_never(event)


def _plan_changes(event: ContinuationPlanned) -> dict[str, object]:
    changes: dict[str, object] = {
        "role": event.role,
        "control_scope": event.control_scope,
        "plan": event.plan,
        "warnings": event.warnings,
    }
    if event.direct_delivery:
        changes["direct_delivery"] = True
    if event.hooks:
        changes["hooks"] = initial_hook_states(event.hooks)
    return changes


def _continuation_changes(run: Run, event: RunContinued) -> dict[str, object]:
    """The last run of a session is put away first; its receivers are told of the session's end."""
    changes: dict[str, object] = {"continued_by": event.run_id, "archive_at": None}
    if run.hooks:
        changes["hooks"] = hand_over_hooks(run.hooks)
    return changes


def _schedule_changes(run: Run, stamp: Stamp) -> dict[str, object]:
    changes: dict[str, object] = {"put_away_from": stamp.recorded_at}
    if run.stage == "announced":
        changes["archive_at"] = stamp.recorded_at
    return changes

"""Events of a run, one of each kind, and histories made of them.

`a_…_run()` returns the events up to a stage. The run of these histories is prepared under the epoch
`PREPARER` and executed under the epoch `CLAIMER`.
"""

from typing import Any

from domain.run.events import (
    AgentOverridden,
    AnnouncementAcknowledged,
    DescendantsSettled,
    EffectAttempted,
    PreparationResumed,
    PreparationStarted,
    RunAnnounced,
    RunArchived,
    RunClaimed,
    RunEnded,
    RunEvent,
    RunQueued,
    RunStarted,
    ScriptsResolved,
    SessionCreated,
    SpawnRefused,
    StepBegun,
    StepTaken,
    StopRequested,
)
from domain.run.facts import Ingredient, StepName, step_key
from domain.run.plan_facts import PlanFacts
from tests.support.builders.facts import fact_of
from tests.support.builders.storytelling import CHILD, plan, ref, requested, run_id

History = tuple[RunEvent, ...]
PREPARER = 1
CLAIMER = 6
DEDUPE_KEY = f"announce:v1:{CHILD}:{run_id(1)}"


def resumed(**changes: Any) -> PreparationResumed:
    plain = {"holder": "server-2", "attempt": 2, "reason": "the lease ran out"}
    return fact_of(PreparationResumed, plain | changes)


def resolved(**changes: Any) -> ScriptsResolved:
    return fact_of(ScriptsResolved, {"receipts": ()} | changes)


def overridden(**changes: Any) -> AgentOverridden:
    plain = {"from_agent_id": "main", "to_agent_id": "steward", "candidates": ()}
    return fact_of(AgentOverridden, plain | changes)


def prepared(**changes: Any) -> PreparationStarted:
    plain = {"child_session_key": CHILD, "agent_id": "main"}
    return fact_of(PreparationStarted, plain | changes)


def step_begun(step: StepName = "attachments", **changes: Any) -> StepBegun:
    plain = {"step": step, "key": step_key(run_id(1), step), "limit_seconds": 5.0}
    place = {"root": "/srv/work", "relative": f"made/by/{step}"}
    return fact_of(StepBegun, plain | place | changes)


def step_taken(step: StepName = "attachments", **changes: Any) -> StepTaken:
    return fact_of(StepTaken, {"step": step, "outcome": "made"} | changes)


def step_undone(step: StepName = "attachments", **changes: Any) -> EffectAttempted:
    plain = {"kind": "undo", "name": step, "attempt": 1, "outcome": "undone"}
    return fact_of(EffectAttempted, plain | changes)


def undo_failed(step: StepName = "attachments", **changes: Any) -> EffectAttempted:
    """Return the event of a failed undo."""
    plain = {"kind": "undo", "name": step, "attempt": 1, "error": ref("busy")}
    return fact_of(EffectAttempted, plain | {"retry_after_seconds": 1} | changes)


def created(**changes: Any) -> SessionCreated:
    plain = {
        "child_session_key": CHILD,
        "session_id": run_id(1001),
        "agent_id": "main",
        "depth": 1,
        "max_depth": 2,
        "role": "orchestrator",
        "control_scope": "children",
        "plan": plan(),
        "ingredients": (Ingredient(source="task", position="task", content=ref("task")),),
        "facts": PlanFacts(),
    }
    return fact_of(SessionCreated, plain | changes)


def queued(**changes: Any) -> RunQueued:
    return fact_of(RunQueued, {"lane": "subagent", "lane_depth": 1} | changes)


def claimed(**changes: Any) -> RunClaimed:
    plain = {"holder": "server-1", "attempt": 1, "lane_width": 8, "lane_running": 0}
    return fact_of(RunClaimed, plain | changes)


def started(**changes: Any) -> RunStarted:
    plain = {
        "runtime": "scripted",
        "system_prompt": ref("system"),
        "message": ref("message"),
        "parts": (),
    }
    return fact_of(RunStarted, plain | changes)


def stop_requested(**changes: Any) -> StopRequested:
    plain = {"by": "operator", "by_requester": False, "reason": ref("enough")}
    return fact_of(StopRequested, plain | changes)


def ended(**changes: Any) -> RunEnded:
    """Return the end of a run whose runtime exited with code 0."""
    plain = {"outcome": "success", "reason": "exit", "exit_code": 0, "result": ref("result")}
    return fact_of(RunEnded, plain | changes)


def settled() -> DescendantsSettled:
    return DescendantsSettled()


def announced(**changes: Any) -> RunAnnounced:
    plain = {
        "disposition": "inbox",
        "status": "success",
        "text": ref("announcement"),
        "dedupe_key": DEDUPE_KEY,
    }
    return fact_of(RunAnnounced, plain | changes)


def acknowledged() -> AnnouncementAcknowledged:
    return AnnouncementAcknowledged(by="main")


def archived(**changes: Any) -> RunArchived:
    return fact_of(RunArchived, {"reason": "due"} | changes)


def refused(**changes: Any) -> SpawnRefused:
    plain = {"rule": "model", "status": "error", "step": "preparation", "text": ref("no model")}
    return fact_of(SpawnRefused, plain | changes)


def refused_and_told(**changes: Any) -> SpawnRefused:
    """Return a refusal that is announced, because its caller had disconnected."""
    plain = {"announcement": ref("told"), "dedupe_key": "announce:v1:x"}
    return refused(**(plain | changes))


def a_requested_run() -> History:
    return (requested(),)


def a_resolved_run() -> History:
    return (*a_requested_run(), resolved())


def an_overridden_run() -> History:
    return (*a_resolved_run(), overridden())


def a_prepared_run() -> History:
    return (*a_resolved_run(), prepared())


def a_run_at_a_step() -> History:
    folder = step_begun("workspace"), step_taken("workspace")
    return (*a_prepared_run(), *folder, step_begun("attachments"))


def a_run_with_steps() -> History:
    return (*a_run_at_a_step(), step_taken("attachments", outcome="written", file_count=2))


def a_created_run() -> History:
    """Return the events of a run whose session is created, and which waits."""
    return (*a_prepared_run(), created())


def a_queued_run() -> History:
    return (*a_created_run(), queued())


def a_claimed_run() -> History:
    """Taken out of its lane under the epoch `CLAIMER`."""
    return (*a_queued_run(), claimed())


def a_started_run() -> History:
    return (*a_claimed_run(), started())


def an_ended_run() -> History:
    return (*a_started_run(), ended())


def an_ended_run_with_pending_descendants(pending: int = 2) -> History:
    return (*a_started_run(), ended(pending_descendants=pending))


def an_announced_run() -> History:
    return (*an_ended_run(), announced())


def an_archived_run() -> History:
    return (*an_announced_run(), archived())


def a_refused_run() -> History:
    return (*a_resolved_run(), refused())

"""The events of a run, one of each kind, and the histories that they make.

`a_…_run()` gives the events up to a point of a run's life. The run of these histories is prepared
under the epoch `PREPARER` and carried out under the epoch `CLAIMER`.
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
    """A second server takes the preparation over."""
    plain = {"holder": "server-2", "attempt": 2, "reason": "the lease ran out"}
    return fact_of(PreparationResumed, plain | changes)


def resolved(**changes: Any) -> ScriptsResolved:
    """No context script was configured."""
    return fact_of(ScriptsResolved, {"receipts": ()} | changes)


def overridden(**changes: Any) -> AgentOverridden:
    """A script put the steward in the place of main."""
    plain = {"from_agent_id": "main", "to_agent_id": "steward", "candidates": ()}
    return fact_of(AgentOverridden, plain | changes)


def prepared(**changes: Any) -> PreparationStarted:
    """The child's key is minted."""
    plain = {"child_session_key": CHILD, "agent_id": "main"}
    return fact_of(PreparationStarted, plain | changes)


def step_begun(step: StepName = "attachments", **changes: Any) -> StepBegun:
    """Something is about to be made, within five seconds."""
    plain = {"step": step, "key": step_key(run_id(1), step), "limit_seconds": 5.0}
    place = {"root": "/srv/work", "relative": f"made/by/{step}"}
    return fact_of(StepBegun, plain | place | changes)


def step_taken(step: StepName = "attachments", **changes: Any) -> StepTaken:
    """It is made."""
    return fact_of(StepTaken, {"step": step, "outcome": "made"} | changes)


def step_undone(step: StepName = "attachments", **changes: Any) -> EffectAttempted:
    """Nothing is left of it."""
    plain = {"kind": "undo", "name": step, "attempt": 1, "outcome": "undone"}
    return fact_of(EffectAttempted, plain | changes)


def undo_failed(step: StepName = "attachments", **changes: Any) -> EffectAttempted:
    """It could not be removed."""
    plain = {"kind": "undo", "name": step, "attempt": 1, "error": ref("busy")}
    return fact_of(EffectAttempted, plain | {"retry_after_seconds": 1} | changes)


def created(**changes: Any) -> SessionCreated:
    """The child's session is there."""
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
    """The run stands in its lane."""
    return fact_of(RunQueued, {"lane": "subagent", "lane_depth": 1} | changes)


def claimed(**changes: Any) -> RunClaimed:
    """A server takes the run out of its lane."""
    plain = {"holder": "server-1", "attempt": 1, "lane_width": 8, "lane_running": 0}
    return fact_of(RunClaimed, plain | changes)


def started(**changes: Any) -> RunStarted:
    """The runtime is about to execute."""
    plain = {
        "runtime": "scripted",
        "system_prompt": ref("system"),
        "message": ref("message"),
        "parts": (),
    }
    return fact_of(RunStarted, plain | changes)


def stop_requested(**changes: Any) -> StopRequested:
    """An operator wants the run to stop."""
    plain = {"by": "operator", "by_requester": False, "reason": ref("enough")}
    return fact_of(StopRequested, plain | changes)


def ended(**changes: Any) -> RunEnded:
    """The runtime left with exit code 0."""
    plain = {"outcome": "success", "reason": "exit", "exit_code": 0, "result": ref("result")}
    return fact_of(RunEnded, plain | changes)


def settled() -> DescendantsSettled:
    """The last descendant is done."""
    return DescendantsSettled()


def announced(**changes: Any) -> RunAnnounced:
    """The result lies in the requester's inbox."""
    plain = {
        "disposition": "inbox",
        "status": "success",
        "text": ref("announcement"),
        "dedupe_key": DEDUPE_KEY,
    }
    return fact_of(RunAnnounced, plain | changes)


def acknowledged() -> AnnouncementAcknowledged:
    """The requester took it."""
    return AnnouncementAcknowledged(by="main")


def archived(**changes: Any) -> RunArchived:
    """The session is put away."""
    return fact_of(RunArchived, {"reason": "due"} | changes)


def refused(**changes: Any) -> SpawnRefused:
    """The preparation failed."""
    plain = {"rule": "model", "status": "error", "step": "preparation", "text": ref("no model")}
    return fact_of(SpawnRefused, plain | changes)


def refused_and_told(**changes: Any) -> SpawnRefused:
    """The preparation failed when no caller was there any more: the inbox says so."""
    plain = {"announcement": ref("told"), "dedupe_key": "announce:v1:x"}
    return refused(**(plain | changes))


def a_requested_run() -> History:
    """Somebody asked, and it was permitted."""
    return (requested(),)


def a_resolved_run() -> History:
    """The context scripts have run."""
    return (*a_requested_run(), resolved())


def an_overridden_run() -> History:
    """A context script named another agent."""
    return (*a_resolved_run(), overridden())


def a_prepared_run() -> History:
    """The child's key is minted."""
    return (*a_resolved_run(), prepared())


def a_run_at_a_step() -> History:
    """The folder is made and the files are about to be written."""
    folder = step_begun("workspace"), step_taken("workspace")
    return (*a_prepared_run(), *folder, step_begun("attachments"))


def a_run_with_steps() -> History:
    """The folder is made and the files are written."""
    return (*a_run_at_a_step(), step_taken("attachments", outcome="written", file_count=2))


def a_created_run() -> History:
    """The child's session is there, and the run waits for something."""
    return (*a_prepared_run(), created())


def a_queued_run() -> History:
    """In its lane, held by nobody."""
    return (*a_created_run(), queued())


def a_claimed_run() -> History:
    """Taken out of its lane under the epoch `CLAIMER`."""
    return (*a_queued_run(), claimed())


def a_started_run() -> History:
    """The runtime executes."""
    return (*a_claimed_run(), started())


def an_ended_run() -> History:
    """Ended with success, nothing below it."""
    return (*a_started_run(), ended())


def an_ended_run_with_pending_descendants(pending: int = 2) -> History:
    """Ended while descendants were under way."""
    return (*a_started_run(), ended(pending_descendants=pending))


def an_announced_run() -> History:
    """Told to the requester."""
    return (*an_ended_run(), announced())


def an_archived_run() -> History:
    """Put away."""
    return (*an_announced_run(), archived())


def a_refused_run() -> History:
    """Refused after the scripts had run."""
    return (*a_resolved_run(), refused())

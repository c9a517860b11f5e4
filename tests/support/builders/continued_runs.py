"""Events and commands of a run that continues a session, and of the run before it.

Run 2 continues the run of `requested()`; the run of a message is run 2 itself.
"""

from typing import Any

from domain.run.commands import (
    DropMessage,
    FailContinuation,
    QueueMessage,
    ScheduleArchive,
    YieldRun,
)
from domain.run.events import (
    ArchiveScheduled,
    ChildrenReported,
    ContinuationFacts,
    ContinuationFailed,
    ContinuationPlanned,
    MessageQueued,
    MessageReceived,
    MessagesDropped,
    RunContinued,
    RunEvent,
    YieldRequested,
)
from domain.run.facts import Ingredient, SpawnOptions
from domain.run.plan_facts import PlanFacts
from tests.support.builders import run_histories as past
from tests.support.builders.facts import fact_of
from tests.support.builders.storytelling import CHILD, at, plan, ref, requester, run_id

History = tuple[RunEvent, ...]


def message_received(**changes: Any) -> MessageReceived:
    plain = {
        "run_id": run_id(2),
        "session_id": run_id(1001),
        "child_session_key": CHILD,
        "continues": run_id(1),
        "opened_by": run_id(1),
        "requester": requester(),
        "agent_id": "main",
        "depth": 1,
        "message": ref("and then?"),
        "options": SpawnOptions(),
        "facts": ContinuationFacts(active_children=0, max_children=5),
        "config_revision": 1,
        "by": "admin",
        "opened_at": at(1),
    }
    return fact_of(MessageReceived, plain | changes)


def planned(**changes: Any) -> ContinuationPlanned:
    plain = {
        "max_depth": 2,
        "role": "orchestrator",
        "control_scope": "children",
        "plan": plan(),
        "ingredients": (Ingredient(source="message", position="task", content=ref("and then?")),),
        "facts": PlanFacts(agent_configured=True),
    }
    return fact_of(ContinuationPlanned, plain | changes)


def continued() -> RunContinued:
    return RunContinued(run_id=run_id(2))


def scheduled(reason: str = "session_closed") -> ArchiveScheduled:
    return fact_of(ArchiveScheduled, {"reason": reason})


def message_queued(name: str = "and this?", **changes: Any) -> MessageQueued:
    """Return the event of a message that waits until the run is over."""
    plain = {"run_id": run_id(7), "message": ref(name), "by": "admin", "cause": "message"}
    return fact_of(MessageQueued, plain | changes)


def messages_dropped(*runs: int) -> MessagesDropped:
    return MessagesDropped(run_ids=tuple(map(run_id, runs or (7,))))


def yield_requested() -> YieldRequested:
    return YieldRequested(by="child")


def children_reported(*runs: int) -> ChildrenReported:
    return ChildrenReported(run_ids=tuple(map(run_id, runs)))


def continuation_failed(number: int = 7) -> ContinuationFailed:
    return ContinuationFailed(run_id=run_id(number), error=ref("no such model"))


def queue(name: str = "and this?", **changes: Any) -> QueueMessage:
    """Let a message wait; by `cause` "steer" end the run for it."""
    plain = {"run_id": run_id(7), "message": ref(name), "by": "admin", "cause": "message"}
    return QueueMessage(**{**plain, "at": at(1), **changes})


def yield_run(*, awaits: bool = True) -> YieldRun:
    return YieldRun(by="child", awaits=awaits)


def fail(number: int = 7) -> FailContinuation:
    return FailContinuation(run_id=run_id(number), error=ref("no such model"))


def drop(number: int = 7) -> DropMessage:
    """Return the command to drop a message."""
    return DropMessage(run_id=run_id(number))


def close(reason: str = "session_closed") -> ScheduleArchive:
    return ScheduleArchive(reason=reason)  # type: ignore[arg-type]


def a_sent_run() -> History:
    """Return the events of a message whose run is not planned yet."""
    return (message_received(),)


def a_planned_run(**changes: Any) -> History:
    return (*a_sent_run(), planned(**changes))


def a_waiting_run(**changes: Any) -> History:
    return (*a_planned_run(**changes), past.queued())


def a_running_run(**changes: Any) -> History:
    return (*a_waiting_run(**changes), past.claimed(), past.started())


def a_finished_run(**changes: Any) -> History:
    return (*a_running_run(**changes), past.ended(), past.announced())


def a_continued_run() -> History:
    return (*past.an_announced_run(), continued())

"""Commands to a run with defaults for everything that a test does not specify."""

from typing import Any

from domain.run.commands import (
    AcknowledgeAnnouncement,
    AnnounceRun,
    ArchiveRun,
    BeginStep,
    ClaimRun,
    ConfirmEffect,
    CreateSession,
    EndRun,
    NoteEffectFailure,
    RefuseSpawn,
    ResolveScripts,
    ResumePreparation,
    StartPreparation,
    StartRun,
    StopRun,
    TakeStep,
)
from domain.run.facts import StepName, UndoOutcome
from domain.run.plan_facts import PlanFacts
from tests.support.builders.storytelling import CHILD, plan, ref


def resume(lost_epoch: int, **changes: Any) -> ResumePreparation:
    plain = {"holder": "server-2", "reason": "the lease ran out"}
    return ResumePreparation(**{**plain, "lost_epoch": lost_epoch, **changes})


def resolve(epoch: int, **changes: Any) -> ResolveScripts:
    plain = {"receipts": (), "candidates": (), "override_to": None}
    return ResolveScripts(**{**plain, "epoch": epoch, **changes})


def prepare(epoch: int, **changes: Any) -> StartPreparation:
    plain = {"child_session_key": CHILD, "agent_id": "main"}
    return StartPreparation(**{**plain, "epoch": epoch, **changes})


def begin_step(epoch: int, **changes: Any) -> BeginStep:
    step = changes.get("step", "attachments")
    plain = {"step": step, "limit_seconds": 5.0, "root": "/srv/work"}
    return BeginStep(**{**plain, "relative": f"made/by/{step}", "epoch": epoch, **changes})


def take_step(epoch: int, **changes: Any) -> TakeStep:
    return TakeStep(**{"step": "attachments", "outcome": "made", "epoch": epoch, **changes})


def confirm_undo(step: StepName = "attachments", how: UndoOutcome = "undone") -> ConfirmEffect:
    return ConfirmEffect(kind="undo", name=step, outcome=how)


def note_undo_failure(step: StepName = "attachments", attempt: int = 1) -> NoteEffectFailure:
    """Return the command to note that an undo failed."""
    return NoteEffectFailure(kind="undo", name=step, attempt=attempt, error=ref("busy"))


def create(epoch: int, **changes: Any) -> CreateSession:
    """Make an orchestrator at depth 1."""
    plain = {
        "depth": 1,
        "max_depth": 2,
        "role": "orchestrator",
        "control_scope": "children",
        "plan": plan(),
        "ingredients": (),
        "warnings": (),
        "note": None,
        "lane": "subagent",
        "facts": PlanFacts(),
    }
    return CreateSession(**{**plain, "epoch": epoch, **changes})


def refuse(epoch: int | None, **changes: Any) -> RefuseSpawn:
    plain = {"rule": "model", "status": "error", "step": "preparation", "text": ref("no model")}
    return RefuseSpawn(**{**plain, "epoch": epoch, **changes})


def claim(**changes: Any) -> ClaimRun:
    """Take the run out of an empty lane of 8."""
    plain = {"holder": "server-1", "lane_width": 8, "lane_running": 0}
    return ClaimRun(**{**plain, **changes})


def start(epoch: int, **changes: Any) -> StartRun:
    plain = {"runtime": "scripted", "system_prompt": ref("system"), "message": ref("message")}
    return StartRun(**{**plain, "parts": (), "epoch": epoch, **changes})


def stop(**changes: Any) -> StopRun:
    plain = {"by": "operator", "by_requester": False, "reason": ref("enough")}
    return StopRun(**{**plain, "text": ref("stopped by operator"), **changes})


def end(epoch: int, **changes: Any) -> EndRun:
    """Return the command to end a run whose runtime exited with code 0."""
    plain = {"outcome": "success", "reason": "exit", "exit_code": 0, "result": ref("result")}
    return EndRun(**{**plain, "epoch": epoch, **changes})


def announce(**changes: Any) -> AnnounceRun:
    plain = {"disposition": "inbox", "reason": None, "status": "success"}
    text = ref("announcement")
    return AnnounceRun(**{**plain, "text": text, "pending_descendants": 0, **changes})


def acknowledge() -> AcknowledgeAnnouncement:
    return AcknowledgeAnnouncement(by="main")


def archive(**changes: Any) -> ArchiveRun:
    return ArchiveRun(**{"reason": "due", "transcript_path": None, **changes})

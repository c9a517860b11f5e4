"""How a run tells of what was made for its child outside the log."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from application.log.event_log import EventLog
from application.log.texts import Contents
from domain.context.attachment_manifest import (
    FilesMismatch,
    attachments_receipt,
    parse_file_list,
    relative_dir,
    short_attachments_receipt,
)
from domain.run.events import StepUndoFailed
from domain.run.facts import StepState
from domain.run.state import Run
from domain.values.record import ContentRef

FAILURES_AT_ONCE = 500


def attachment_list(run: Run) -> ContentRef | None:
    """The list of the files that were written; None when none ever were."""
    step = run.step("attachments")
    return step.manifest if step is not None else None


def attachments_body(run: Run, texts: Mapping[UUID, str]) -> dict[str, Any] | None:
    """The receipt of files that were written, and what has become of them; None when none were.
    The files are named when their list is among the texts."""
    step = run.step("attachments")
    if step is None or step.manifest is None:
        return None
    where, state = relative_dir(run.run_id), {"state": _state(step)}
    try:
        listed = parse_file_list(texts[step.manifest.id])
    except (KeyError, FilesMismatch):
        return short_attachments_receipt(where, step.file_count or 0, step.total_bytes or 0) | state
    return attachments_receipt(where, listed) | state


def pending_undo_body(run: Run) -> list[dict[str, Any]]:
    """The steps that are to be undone and are not yet: where that is, how often it failed, and when
    it is tried again. `error` is told by `tell_undo_errors`."""
    return [
        {
            "step": step.name,
            "root": step.root,
            "relative": step.relative,
            "failures": step.undo_failures,
            "nextAttemptAt": step.undo_at,
            "error": None,
        }
        for step in run.steps
        if step.undo_at is not None
    ]


async def add_undo_errors(
    bodies: Sequence[dict[str, Any]], run: Run, log: EventLog, contents: Contents
) -> None:
    """Put into bodies of `undoing_body` why the last attempt failed."""
    wanted = {(body["step"], body["failures"]): body for body in bodies if body["failures"]}
    after = 0
    while wanted:
        events = await log.read(
            after=after, limit=FAILURES_AT_ONCE, types=("StepUndoFailed",), run_id=run.run_id
        )
        for recorded in events:
            assert isinstance(recorded.event, StepUndoFailed)
            body = wanted.pop((recorded.event.step, recorded.event.attempt), None)
            if body is not None and recorded.event.error is not None:
                body["error"] = await contents.text(recorded.event.error)
        if len(events) < FAILURES_AT_ONCE:
            return
        after = events[-1].envelope.position


def _state(step: StepState) -> str:
    if step.phase == "undone":
        return "left_in_place" if step.undone == "left_in_place" else "removed"
    return "written" if step.undo_at is None else "removing"

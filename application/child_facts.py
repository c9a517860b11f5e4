"""What a child is told of itself, read off its run."""

import posixpath
from collections.abc import Mapping
from uuid import UUID

from domain.context.thread_binding import read_origin
from domain.prompt.child_prompt import AttachmentsNote, ChildFacts
from domain.run.facts import StepState
from domain.run.state import Run
from domain.values.record import ContentRef


def build_child_facts(run: Run, max_depth: int, texts: Mapping[UUID, str]) -> ChildFacts:
    """Who the child is; `texts` holds the addresses of its thread and of its requester."""
    assert run.child_session_key is not None
    return ChildFacts(
        depth=run.depth,
        max_spawn_depth=max_depth,
        child_session_key=run.child_session_key,
        label=run.label,
        requester_session_key=run.requester.session_key,
        requester_channel=_channel(run, texts),
        is_persistent=run.options.mode == "session",
    )


def address_refs(run: Run) -> tuple[ContentRef, ...]:
    """What is kept of where its thread and its requester are."""
    return tuple(one for one in (run.delivery_origin, run.requester.origin) if one is not None)


def _channel(run: Run, texts: Mapping[UUID, str]) -> str | None:
    """The channel that the child was asked for from: that of its thread, if it is bound to one."""
    for one in address_refs(run):
        channel = read_origin(texts.get(one.id)).get("channel")
        if channel is not None:
            return str(channel)
    return None


def _attachments_step(run: Run) -> StepState | None:
    """The step that wrote what was attached; None when nothing of it lies in the workspace."""
    step = run.step("attachments")
    if step is None or step.phase != "taken" or step.undo_at is not None:
        return None
    return step if step.manifest else None


def attachments_note(run: Run) -> AttachmentsNote | None:
    """What the prompt says of it."""
    step, asked = _attachments_step(run), run.attachments
    if step is None or asked is None:
        return None
    return AttachmentsNote(
        count=step.file_count or 0,
        total_bytes=step.total_bytes or 0,
        relative_dir=step.relative or "",
        mount_path_hint=asked.mount_path_hint,
    )


def attachments_dir(run: Run) -> str | None:
    """Where it lies, as an absolute path."""
    step = _attachments_step(run)
    if step is None or step.root is None or step.relative is None:
        return None
    return posixpath.join(step.root, step.relative)

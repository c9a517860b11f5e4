"""What a child is told of itself, read off its run."""

import posixpath
from collections.abc import Mapping
from uuid import UUID

from domain.child_prompt import AttachmentsNote, ChildFacts
from domain.json_text import NotJson, read_json
from domain.run.events import SessionCreated
from domain.run.state import Run
from domain.run.steps import StepState


def child_facts(run: Run, created: SessionCreated, texts: Mapping[UUID, str]) -> ChildFacts:
    """Who the child is; `texts` holds the addresses of its requester."""
    assert run.child_session_key is not None
    origin = run.requester.origin
    return ChildFacts(
        depth=created.depth,
        max_spawn_depth=created.max_depth,
        child_session_key=run.child_session_key,
        label=run.label,
        requester_session_key=run.requester.session_key,
        requester_channel=_channel(texts.get(origin.id, "")) if origin else None,
        is_persistent=run.options.mode == "session",
    )


def _channel(origin: str) -> str | None:
    """The channel among the addresses that the requester gave."""
    try:
        given = read_json(origin)
    except NotJson:
        return None
    channel = given.get("channel") if isinstance(given, dict) else None
    return channel if isinstance(channel, str) else None


def _written(run: Run) -> StepState | None:
    """The step that wrote what was attached; None when nothing of it lies in the workspace."""
    step = run.step("attachments")
    return step if step is not None and step.phase == "taken" and step.manifest else None


def attachments_note(run: Run) -> AttachmentsNote | None:
    """What the prompt says of it."""
    step, asked = _written(run), run.attachments
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
    step = _written(run)
    if step is None or step.root is None or step.relative is None:
        return None
    return posixpath.join(step.root, step.relative)

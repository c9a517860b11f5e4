"""What a request attaches, judged once and before anything is recorded of it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from application.ports.contents import Contents
from application.ports.event_log import StagedFile
from application.spawn_request import SpawnRequest
from domain.attachment_manifest import file_list, kept_text, read_kept, receipt, relative_dir
from domain.attachments import (
    AttachmentAsked,
    AttachmentRefusal,
    judge,
    judge_unread,
    mount_path_hint,
)
from domain.configuration.configuration import Configuration
from domain.configuration.tools import Attachments
from domain.run.state import Run
from domain.spawn_command import AttachmentsJudged


@dataclass(frozen=True, slots=True)
class Attached:
    """The verdict, and the contents if it is a good one."""

    verdict: AttachmentsJudged
    bodies: tuple[bytes, ...] = field(default=(), repr=False)

    def staged(self, run_id: UUID) -> tuple[StagedFile, ...]:
        """The contents as they are set aside until they are written."""
        return tuple(StagedFile(run_id, ordinal, body) for ordinal, body in enumerate(self.bodies))


async def attached(request: SpawnRequest, configuration: Configuration) -> Attached | None:
    """Judge what is attached under the limits that are configured; None when nothing is."""
    if not request.attachments:
        return None
    limits = configuration.tools.sessions_spawn.attachments
    unread = judge_unread(request.attachments, limits)
    if unread is not None:
        return _refused(request.attachments, unread)
    # Megabytes of base64 would hold up everybody else.
    return await asyncio.to_thread(_judged, request.attachments, request.mount_path, limits)


async def receipt_of(run: Run, contents: Contents) -> dict[str, object] | None:
    """What the caller is told of the files that were attached; None when none were."""
    asked = run.attachments
    if asked is None or asked.manifest is None:
        return None
    text = await contents.text(asked.manifest)
    return receipt(relative_dir(run.run_id), read_kept(text)) if text is not None else None


def _judged(
    asked: Sequence[AttachmentAsked], mount_path: str | None, limits: Attachments
) -> Attached:
    judged = judge(asked, limits)
    if isinstance(judged, AttachmentRefusal):
        return _refused(asked, judged)
    verdict = AttachmentsJudged(
        count=judged.count,
        total_bytes=judged.total_bytes,
        mount_path_hint=mount_path_hint(mount_path),
        retain=limits.retain_on_session_keep,
        manifest=kept_text(file_list(judged)),
    )
    return Attached(verdict, tuple(file.content for file in judged.files))


def _refused(asked: Sequence[AttachmentAsked], why: AttachmentRefusal) -> Attached:
    return Attached(
        AttachmentsJudged(count=len(asked), refusal=why.text, refusal_status=why.status)
    )

"""Attachments of a request, checked once, before anything is recorded."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from application.log.answers import AttachmentsReceipt
from application.log.event_log import StagedFile
from application.log.texts import Contents
from domain.configuration.configuration import Configuration
from domain.configuration.tools import Attachments
from domain.context.attachment_manifest import (
    file_list,
    parse_file_list,
    relative_dir,
    render_file_list,
)
from domain.context.attachments import (
    AttachmentRefusal,
    RequestedAttachment,
    check_attachments,
    check_unread_attachments,
    mount_path_hint,
)
from domain.run.state import Run
from domain.spawn.request import AttachmentsVerdict, SpawnRequest


@dataclass(frozen=True, slots=True)
class EvaluatedAttachments:
    """The verdict on a request's attachments, and their contents if they are accepted."""

    verdict: AttachmentsVerdict
    bodies: tuple[bytes, ...] = field(default=(), repr=False)

    def staged(self, run_id: UUID) -> tuple[StagedFile, ...]:
        """Return the contents as files to stage until they are written."""
        return tuple(StagedFile(run_id, ordinal, body) for ordinal, body in enumerate(self.bodies))


async def evaluate_attachments(
    request: SpawnRequest, configuration: Configuration
) -> EvaluatedAttachments | None:
    """Check the attachments against the configured limits. Return None if there are none."""
    if not request.attachments:
        return None
    limits = configuration.tools.sessions_spawn.attachments
    unread = check_unread_attachments(len(request.attachments), limits)
    if unread is not None:
        return _refused_attachments(request.files, unread)
    # Decoding megabytes of base64 would block the event loop.
    return await asyncio.to_thread(
        _evaluate_files, request.files, request.attach_as.mount_path, limits
    )


async def read_attachments_receipt(run: Run, contents: Contents) -> AttachmentsReceipt | None:
    """Return the receipt of the run's attachments; None if there are none, or their list was
    erased."""
    attachments = run.attachments
    if attachments is None or attachments.manifest is None:
        return None
    text = await contents.text(attachments.manifest)
    if text is None:
        return None
    listed = parse_file_list(text)
    return AttachmentsReceipt.from_source(
        listed, count=len(listed.files), rel_dir=relative_dir(run.run_id)
    )


def _evaluate_files(
    attachments: Sequence[RequestedAttachment], mount_path: str | None, limits: Attachments
) -> EvaluatedAttachments:
    judged = check_attachments(attachments, limits)
    if isinstance(judged, AttachmentRefusal):
        return _refused_attachments(attachments, judged)
    verdict = AttachmentsVerdict(
        count=judged.count,
        total_bytes=judged.total_bytes,
        mount_path_hint=mount_path_hint(mount_path),
        retain=limits.retain_on_session_keep,
        manifest=render_file_list(file_list(judged)),
    )
    return EvaluatedAttachments(verdict, tuple(file.content for file in judged.files))


def _refused_attachments(
    attachments: Sequence[RequestedAttachment], why: AttachmentRefusal
) -> EvaluatedAttachments:
    return EvaluatedAttachments(
        AttachmentsVerdict(count=len(attachments), refusal=why.text, refusal_status=why.status)
    )

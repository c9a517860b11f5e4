"""Announcements as they are shown in an inbox."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from application.log.texts import Contents
from application.queries.views.run import AnnouncementStateName, announcement_state
from application.queries.views.view import View
from domain.context.thread_binding import read_origin
from domain.delivery.announcement import with_present_path
from domain.run.state import Run
from domain.values.record import ContentRef


class AnnouncementView(View):
    """An announcement in an inbox. `origin` has those of `channel`, `accountId`, `to` and
    `threadId` that are known: where the result is to be sent from here."""

    id: UUID
    run_id: UUID
    child_session_key: str | None
    label: str | None
    position: int
    created_at: datetime | None
    status: str
    state: AnnouncementStateName
    text: str | None
    origin: dict[str, str | int] | None
    dedupe_key: str
    acknowledged_at: datetime | None


class InboxView(View):
    """A page of an inbox; `nextAfter` is null behind the last one."""

    items: list[AnnouncementView]
    next_after: int | None


async def announcement_views(
    contents: Contents, runs: Sequence[Run], *, with_text: bool
) -> list[AnnouncementView]:
    """The announcements of these runs; `with_text` when the caller may see free texts whole, and
    addresses at all."""
    refs = [run.inbox.text for run in runs if run.inbox and run.inbox.text]
    texts = await (contents.texts(refs) if with_text else contents.previews(refs))
    origins: Mapping[UUID, str] = {}
    if with_text:
        known = {ref.id: ref for ref in map(_inbox_target_of, runs) if ref is not None}
        origins = await contents.texts(known.values()) if known else {}
    return [_view(run, texts, origins) for run in runs]


def _view(run: Run, texts: Mapping[UUID, str], origins: Mapping[UUID, str]) -> AnnouncementView:
    inbox, ref = run.inbox, _inbox_target_of(run)
    assert inbox is not None
    origin = read_origin(origins.get(ref.id)) if ref is not None else None
    return AnnouncementView(
        id=run.run_id,
        run_id=run.run_id,
        child_session_key=run.child_session_key,
        label=run.label,
        position=inbox.position,
        created_at=inbox.created_at,
        status=inbox.status,
        state=announcement_state(run).state,
        text=_text(run, texts),
        origin=dict(origin) if origin else None,
        dedupe_key=inbox.dedupe_key,
        acknowledged_at=inbox.acknowledged_at,
    )


def _text(run: Run, texts: Mapping[UUID, str]) -> str | None:
    ref = run.inbox.text if run.inbox is not None else None
    text = texts.get(ref.id) if ref is not None else None
    sealed_path = run.transcript.path if run.transcript is not None else None
    return with_present_path(text, sealed_path, run.transcript_path) if text else None


def _inbox_target_of(run: Run) -> ContentRef | None:
    """Where it is to go from the inbox: by the word of a hook, else to the child's thread, else to
    where the requester is. What a sub-agent has asked for goes nowhere from there."""
    if run.requester.depth > 0:
        return None
    origin = run.inbox.origin if run.inbox is not None else None
    return origin or run.delivery_origin or run.requester.origin

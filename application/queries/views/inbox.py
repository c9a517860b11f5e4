"""Views of announcements in an inbox."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

from application.log.texts import Contents
from application.queries.views.run import AnnouncementStateName, announcement_state
from application.queries.views.view import View
from domain.context.thread_binding import read_origin
from domain.delivery.announcement import with_present_path
from domain.run.facts import ParkReason
from domain.run.state import Run

DeliveryPhase = Literal["due", "delivered", "parked"]


class DeliveryView(View):
    """The delivery of an announcement to one webhook. `statusCode` and `error` belong to the last
    attempt. `nextAttemptAt` is null if no attempt is scheduled; `parkedFor` says why it was parked.
    """

    webhook: str
    state: DeliveryPhase
    attempts: int
    status_code: int | None
    error: str | None
    next_attempt_at: datetime | None
    parked_for: ParkReason | None


class AnnouncementView(View):
    """An announcement in an inbox. `requester` owns the inbox. `origin` says where to send the
    result: those of `channel`, `accountId`, `to` and `threadId` that are known. `deliveries` are
    its deliveries to webhooks. If one is parked, the announcement appears in the inbox again at a
    later position, unacknowledged."""

    id: UUID
    run_id: UUID
    requester: str
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
    deliveries: list[DeliveryView]


class InboxView(View):
    """A page of an inbox; `nextAfter` is null on the last page."""

    items: list[AnnouncementView]
    next_after: int | None


async def announcement_views(
    contents: Contents, runs: Sequence[Run], *, with_text: bool
) -> list[AnnouncementView]:
    """Return the announcements of runs.

    `with_text` is True if the caller may see whole texts and origins; otherwise texts are previews.
    """
    refs = [run.inbox.text for run in runs if run.inbox and run.inbox.text]
    refs += [
        delivery.error
        for run in runs
        for delivery in run.effects_of("webhook")
        if delivery.error is not None
    ]
    texts = await (contents.texts(refs) if with_text else contents.previews(refs))
    origins: Mapping[UUID, str] = {}
    if with_text:
        known = {ref.id: ref for ref in (run.inbox_target for run in runs) if ref is not None}
        origins = await contents.texts(known.values()) if known else {}
    return [_view(run, texts, origins) for run in runs]


def _view(run: Run, texts: Mapping[UUID, str], origins: Mapping[UUID, str]) -> AnnouncementView:
    inbox, ref = run.inbox, run.inbox_target
    assert inbox is not None
    origin = read_origin(origins.get(ref.id)) if ref is not None else None
    return AnnouncementView.from_source(
        inbox,
        id=run.run_id,
        run_id=run.run_id,
        requester=run.requester.display_key,
        child_session_key=run.child_session_key,
        label=run.label,
        state=announcement_state(run).state,
        text=_text(run, texts),
        origin=dict(origin) if origin else None,
        deliveries=[
            DeliveryView.from_source(
                delivery,
                webhook=delivery.name,
                state="delivered" if delivery.phase == "done" else delivery.phase,
                error=texts.get(delivery.error.id) if delivery.error is not None else None,
                next_attempt_at=delivery.due_at,
                parked_for=delivery.reason,
            )
            for delivery in run.effects_of("webhook")
        ],
    )


def _text(run: Run, texts: Mapping[UUID, str]) -> str | None:
    ref = run.inbox.text if run.inbox is not None else None
    text = texts.get(ref.id) if ref is not None else None
    sealed_path = run.transcript.path if run.transcript is not None else None
    return with_present_path(text, sealed_path, run.transcript_path) if text else None

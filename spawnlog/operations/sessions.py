"""Sessions: what they are, what they were told, and what they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from spawnlog.core.request import (
    PageRequest,
    Request,
    command_request,
    page_request,
    path_of,
    read_request,
    sent_body,
)

if TYPE_CHECKING:
    from application.commands.announcements import AcknowledgedAnswer, RedrivenAnswer
    from application.queries.timeline.tree import SessionTreeView
    from application.queries.views.inbox import AnnouncementView, InboxView
    from application.queries.views.session import SessionView
    from application.queries.views.shared_context import (
        RunSharedContextView,
        SharedContextView,
        SharedSizesView,
    )
    from infrastructure.inbound.http.schemas.answers import TranscriptProvidedAnswer
    from spawnlog.operations.bodies import EntryObject


def get_session(
    key: str, *, at: str | datetime | None = None, min_position: int | None = None
) -> Request[SessionView]:
    """One session."""
    return read_request(
        "getSession",
        path_of("sessions", key),
        {"at": at, "minPosition": min_position},
        "SessionView",
    )


def get_session_tree(
    key: str,
    *,
    at: str | datetime | None = None,
    limit: int | None = None,
    depth: int | None = None,
    min_position: int | None = None,
) -> Request[SessionTreeView]:
    """A session and all below it."""
    return read_request(
        "getSessionTree",
        path_of("sessions", key, "tree"),
        {"at": at, "limit": limit, "depth": depth, "minPosition": min_position},
        "SessionTreeView",
    )


def list_announcements(
    key: str,
    *,
    after: int | None = None,
    limit: int | None = None,
    wait: float | None = None,
    at: str | datetime | None = None,
    min_position: int | None = None,
) -> PageRequest[InboxView, AnnouncementView]:
    """A session's inbox."""
    return page_request(
        "listAnnouncements",
        path_of("sessions", key, "announcements"),
        {"after": after, "limit": limit, "wait": wait, "at": at, "minPosition": min_position},
        "InboxView",
    )


def acknowledge_announcement(
    key: str, id: str | UUID, *, position: int | None = None, idempotency_key: str | None = None
) -> Request[AcknowledgedAnswer]:
    """Take an announcement."""
    return command_request(
        "acknowledgeAnnouncement",
        "POST",
        path_of("sessions", key, "announcements", id, "ack"),
        {"position": position},
        "AcknowledgedAnswer",
        idempotency_key=idempotency_key,
    )


def list_ledger(
    *,
    state: Literal["parked", "due", "delivered", "acknowledged"] | None = None,
    after: int | None = None,
    limit: int | None = None,
    at: str | datetime | None = None,
    min_position: int | None = None,
) -> PageRequest[InboxView, AnnouncementView]:
    """The ledger of announcements."""
    return page_request(
        "listLedger",
        path_of("announcements"),
        {"state": state, "after": after, "limit": limit, "at": at, "minPosition": min_position},
        "InboxView",
    )


def redrive_announcement(
    id: str | UUID, reason: str, *, webhook: str | None = None, idempotency_key: str | None = None
) -> Request[RedrivenAnswer]:
    """Send a parked announcement again."""
    return command_request(
        "redriveAnnouncement",
        "POST",
        path_of("announcements", id, "redrive"),
        {"reason": reason, "webhook": webhook},
        "RedrivenAnswer",
        idempotency_key=idempotency_key,
    )


def provide_transcript(
    key: str,
    entries: Sequence[EntryObject],
    *,
    total_tokens: int | None = None,
    idempotency_key: str | None = None,
) -> Request[TranscriptProvidedAnswer]:
    """Tell what was said in a session."""
    return command_request(
        "provideTranscript",
        "PUT",
        path_of("sessions", key, "transcript"),
        {"entries": entries, "totalTokens": total_tokens},
        "TranscriptProvidedAnswer",
        idempotency_key=idempotency_key,
    )


def get_run_shared_context(
    run_id: str | UUID, *, at: str | datetime | None = None, min_position: int | None = None
) -> Request[RunSharedContextView]:
    """What a run was given of its family's context."""
    return read_request(
        "getRunSharedContext",
        path_of("runs", run_id, "shared-context"),
        {"at": at, "minPosition": min_position},
        "RunSharedContextView",
    )


def get_shared_context(
    key: str, *, at: str | datetime | None = None, min_position: int | None = None
) -> Request[SharedContextView]:
    """What a session shares with its family."""
    return read_request(
        "getSharedContext",
        path_of("sessions", key, "shared-context"),
        {"at": at, "minPosition": min_position},
        "SharedContextView",
    )


def patch_shared_context(
    key: str, changes: Mapping[str, Any], *, if_match: str = "*"
) -> Request[SharedContextView | SharedSizesView]:
    """Write into what a session shares: keys with their values, None takes one away. `if_match` is
    the version that the changes were made for, in double quotes, or `*` for any. It is sent once
    only: of a second time nobody could tell whether the first was done."""
    return Request(
        operation="patchSharedContext",
        method="PATCH",
        path=path_of("sessions", key, "shared-context"),
        content=sent_body(changes, drop_none=False),
        headers={"Content-Type": "application/json", "If-Match": if_match},
        answers=("SharedContextView", "SharedSizesView"),
    )

"""Announcements as they are shown in an inbox."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from application.log.texts import Contents
from domain.context.thread_binding import read_origin
from domain.run.state import Run
from domain.values.record import ContentRef
from infrastructure.inbound.http.schemas.run import announcement_state


async def inbox_items(
    contents: Contents, runs: Sequence[Run], *, with_text: bool
) -> list[dict[str, Any]]:
    """The announcements of these runs; `with_text` when the caller may see free texts whole, and
    addresses at all."""
    refs = [run.inbox.text for run in runs if run.inbox and run.inbox.text]
    texts = await (contents.texts(refs) if with_text else contents.previews(refs))
    origins: Mapping[UUID, str] = {}
    if with_text:
        known = {ref.id: ref for ref in map(_inbox_target_of, runs) if ref is not None}
        origins = await contents.texts(known.values()) if known else {}
    return [_item(run, texts, origins) for run in runs]


def _item(run: Run, texts: Mapping[UUID, str], origins: Mapping[UUID, str]) -> dict[str, Any]:
    inbox, ref = run.inbox, _inbox_target_of(run)
    assert inbox is not None
    return {
        "id": run.run_id,
        "runId": run.run_id,
        "childSessionKey": run.child_session_key,
        "label": run.label,
        "position": inbox.position,
        "createdAt": inbox.created_at,
        "status": inbox.status,
        "state": announcement_state(run)["state"],
        "text": texts.get(inbox.text.id) if inbox.text else None,
        "origin": (read_origin(origins.get(ref.id)) or None) if ref is not None else None,
        "dedupeKey": inbox.dedupe_key,
        "acknowledgedAt": inbox.acknowledged_at,
    }


def _inbox_target_of(run: Run) -> ContentRef | None:
    """Where it is to go from the inbox: by the word of a hook, else to the child's thread, else to
    where the requester is. What a sub-agent has asked for goes nowhere from there."""
    if run.requester.depth > 0:
        return None
    said = run.inbox.origin if run.inbox is not None else None
    return said or run.delivery_origin or run.requester.origin

"""Views of recorded events."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from application.log.envelope import RecordedEvent
from application.log.texts import Contents
from application.queries.views.view import View
from domain.run.events import (
    ContinuationFailed,
    EffectAttempted,
    EffectRedriven,
    RunEnded,
    ScriptsResolved,
    StopRequested,
)
from domain.values.record import ContentRef


class ActorView(View):
    """The actor that caused an event: `kind` is `token`, `child`, `anybody` or `system`."""

    kind: str
    token: str | None
    session: str | None


class EventView(View):
    """An event with its envelope and payload. Free texts appear only as references."""

    position: int
    stream: str
    version: int
    type: str
    type_version: int
    recorded_at: datetime
    occurred_at: datetime
    event_id: UUID
    command_id: UUID
    actor: ActorView
    causation: UUID | None
    correlation: str | None
    run_id: UUID | None
    traceparent: str | None
    config_revision: int
    writer_version: str
    append_last: int
    chain_hash: str
    payload: dict[str, Any]


class FailureText(View):
    """The error of a failed undo, webhook delivery or hook call, or the reason of a stop that ended
    the run at once; null if the text was erased."""

    error: str | None


class ReasonText(View):
    """The reason of a stop or of a redrive; null if the text was erased."""

    reason: str | None


class ScriptFailureTexts(View):
    """The errors of context scripts that failed or were skipped, by script id."""

    errors: dict[str, str | None]


class EventWithTexts(EventView):
    """An event with its error or reason, or the errors of its context scripts."""

    texts: FailureText | ReasonText | ScriptFailureTexts


class EventListView(View):
    """A page of the log. `head` is the end of the log, now or as of `at`. The page was scanned up
    to `nextAfter`; newest first, it was scanned from `nextAfter` down to `nextBefore`. `nextBefore`
    is null if no older event matches, and on pages with the oldest first."""

    items: list[EventView]
    next_after: int
    next_before: int | None
    head: int


class RunEventListView(View):
    """Events of one run; `nextAfter` is null on the last page."""

    items: list[EventWithTexts | EventView]
    next_after: int | None


def event_view(recorded: RecordedEvent) -> EventView:
    """Return an event without its texts."""
    return EventView(**_members(recorded))


def _members(recorded: RecordedEvent) -> dict[str, Any]:
    envelope = recorded.envelope
    return {
        **envelope.provenance._asdict(),
        **envelope._asdict(),
        "chain_hash": envelope.chain_hash.hex(),
        "payload": recorded.event.members(),
    }


async def events_with_texts(
    events: Sequence[RecordedEvent], contents: Contents
) -> list[EventWithTexts | EventView]:
    """Return the events with their texts, for callers that may read them."""
    single = [_error(event) or _reason(event) for event in events]
    failed = [_script_errors(event) for event in events]
    references = [ref for ref in single if ref is not None]
    references += [ref for refs in failed for ref in refs.values()]
    texts = await contents.texts(references) if references else {}
    return [
        _event_with_texts(recorded, errors, texts)
        for recorded, errors in zip(events, failed, strict=True)
    ]


def _event_with_texts(
    recorded: RecordedEvent, errors: Mapping[str, ContentRef], texts: Mapping[UUID, str]
) -> EventWithTexts | EventView:
    if (error := _error(recorded)) is not None:
        return EventWithTexts(**_members(recorded), texts=FailureText(error=texts.get(error.id)))
    if (reason := _reason(recorded)) is not None:
        return EventWithTexts(**_members(recorded), texts=ReasonText(reason=texts.get(reason.id)))
    if errors:
        found = {id: texts.get(ref.id) for id, ref in errors.items()}
        return EventWithTexts(**_members(recorded), texts=ScriptFailureTexts(errors=found))
    return event_view(recorded)


def _error(recorded: RecordedEvent) -> ContentRef | None:
    match recorded.event:
        case EffectAttempted(error=error) | ContinuationFailed(error=error):
            return error
        case RunEnded(stopped_by=str(), error=reason):
            # The run was not held: the stop ended it, and recorded its reason here.
            return reason
    return None


def _reason(recorded: RecordedEvent) -> ContentRef | None:
    event = recorded.event
    return event.reason if isinstance(event, StopRequested | EffectRedriven) else None


def _script_errors(recorded: RecordedEvent) -> dict[str, ContentRef]:
    if not isinstance(recorded.event, ScriptsResolved):
        return {}
    return {
        receipt.id: receipt.error
        for receipt in recorded.event.receipts
        if receipt.error is not None
    }

"""How a recorded event reads."""

from collections.abc import Sequence
from typing import Any

from application.envelope import RecordedEvent
from application.ports.contents import Contents
from domain.run.step_events import StepUndoFailed


def event_body(recorded: RecordedEvent) -> dict[str, Any]:
    """The envelope and the payload. Free texts are references in it, never the texts."""
    envelope = recorded.envelope
    source = envelope.provenance
    return {
        "position": envelope.position,
        "stream": envelope.stream,
        "version": envelope.version,
        "type": envelope.type,
        "typeVersion": envelope.type_version,
        "recordedAt": envelope.recorded_at,
        "occurredAt": envelope.occurred_at,
        "eventId": envelope.event_id,
        "commandId": envelope.command_id,
        "actor": {
            "kind": source.actor.kind,
            "token": source.actor.token,
            "session": source.actor.session,
        },
        "causation": source.causation,
        "correlation": source.correlation,
        "runId": source.run_id,
        "traceparent": source.traceparent,
        "configRevision": source.config_revision,
        "writerVersion": envelope.writer_version,
        "appendLast": envelope.append_last,
        "chainHash": envelope.chain_hash.hex(),
        "payload": recorded.event.model_dump(mode="json"),
    }


async def told_events(
    events: Sequence[RecordedEvent], contents: Contents | None
) -> list[dict[str, Any]]:
    """The bodies; with `contents`, for who may read texts, `texts.error` says why something could
    not be undone: it can be read nowhere else once the next attempt has failed."""
    bodies = [event_body(one) for one in events]
    failed = {
        at: one.event.error
        for at, one in enumerate(events)
        if isinstance(one.event, StepUndoFailed) and one.event.error is not None
    }
    if contents is not None and failed:
        texts = await contents.texts(failed.values())
        for at, error in failed.items():
            bodies[at]["texts"] = {"error": texts.get(error.id)}
    return bodies

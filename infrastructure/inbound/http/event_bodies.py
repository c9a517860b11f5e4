"""How a recorded event reads."""

from typing import Any

from application.envelope import RecordedEvent


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

"""How a recorded event reads."""

from collections.abc import Sequence
from typing import Any

from application.log.envelope import RecordedEvent
from application.log.texts import Contents
from domain.run.events import ScriptsResolved, StepUndoFailed
from domain.values.record import ContentRef


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


async def event_bodies(
    events: Sequence[RecordedEvent], contents: Contents | None
) -> list[dict[str, Any]]:
    """The bodies; with `contents`, for who may read texts, `texts.error` says why something could
    not be undone, and `texts.errors` why context scripts failed or were skipped, each under its
    id: they can be read nowhere else."""
    bodies = [event_body(one) for one in events]
    if contents is None:
        return bodies
    undone = {at: ref for at, one in enumerate(events) if (ref := _undo_error(one)) is not None}
    failed = {at: refs for at, one in enumerate(events) if (refs := _script_errors(one))}
    wanted = [*undone.values(), *(ref for refs in failed.values() for ref in refs.values())]
    texts = await contents.texts(wanted) if wanted else {}
    for at, error in undone.items():
        bodies[at]["texts"] = {"error": texts.get(error.id)}
    for at, refs in failed.items():
        bodies[at]["texts"] = {"errors": {id: texts.get(ref.id) for id, ref in refs.items()}}
    return bodies


def _undo_error(recorded: RecordedEvent) -> ContentRef | None:
    return recorded.event.error if isinstance(recorded.event, StepUndoFailed) else None


def _script_errors(recorded: RecordedEvent) -> dict[str, ContentRef]:
    if not isinstance(recorded.event, ScriptsResolved):
        return {}
    return {one.id: one.error for one in recorded.event.receipts if one.error is not None}

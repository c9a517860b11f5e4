"""The chain: each event's hash covers the one before it, its whole envelope and its stored bytes.

The encoding is fixed for ever under its format number: a two-byte format, then the previous hash
and each field as a four-byte length and its bytes (length 0xFFFFFFFF for an absent one). Integers
are eight bytes, big endian; instants are microseconds since 1970-01-01 UTC.
"""

import hashlib
import struct
from datetime import UTC, datetime
from uuid import UUID

from application.envelope import Envelope

CHAIN_FORMAT = 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ABSENT = b"\xff\xff\xff\xff"

Field = str | bytes | int | UUID | datetime | None


def microseconds(instant: datetime) -> int:
    """Exact microseconds since the epoch (floats would lose some)."""
    delta = instant - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def _field(value: Field) -> bytes:
    if value is None:
        return _ABSENT
    if isinstance(value, str):
        data = value.encode()
    elif isinstance(value, bytes):
        data = value
    elif isinstance(value, UUID):
        data = value.bytes
    elif isinstance(value, datetime):
        data = struct.pack(">q", microseconds(value))
    else:
        data = struct.pack(">q", value)
    return struct.pack(">I", len(data)) + data


def chain_hash(previous: bytes, envelope: Envelope, state: bytes) -> bytes:
    """The hash of an event; `envelope.chain_hash` itself is not read."""
    source = envelope.provenance
    fields: tuple[Field, ...] = (
        envelope.position,
        envelope.stream,
        envelope.version,
        envelope.type,
        envelope.type_version,
        envelope.recorded_at,
        envelope.occurred_at,
        envelope.event_id,
        envelope.command_id,
        source.actor.kind,
        source.actor.token,
        source.actor.session,
        source.causation,
        source.correlation,
        source.run_id,
        source.traceparent,
        source.config_revision,
        envelope.writer_version,
        envelope.append_last,
        state,
    )
    encoded = struct.pack(">H", CHAIN_FORMAT) + b"".join(map(_field, (previous, *fields)))
    return hashlib.sha256(encoded).digest()

"""The chain: each event's hash covers the one before it, its whole envelope and its stored bytes.

The encoding is fixed for ever under its format number: a two-byte format, then the previous hash
and each field as a four-byte length and its bytes (length 0xFFFFFFFF for an absent one). Integers
are eight bytes, big endian; instants are microseconds since 1970-01-01 UTC.
"""

import hashlib
import struct
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from uuid import UUID

from application.log.envelope import Envelope, Provenance

CHAIN_FORMAT = 1
CACHED_INSTANTS_MAX = 1_024
CACHED_TEXTS_MAX = 4_096
YEAR_2000_MICROSECONDS = 946_684_800_000_000
"""From where PostgreSQL counts its instants."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORMAT = struct.pack(">H", CHAIN_FORMAT)
ABSENT = b"\xff\xff\xff\xff"
_LENGTH = struct.Struct(">I").pack
_NUMBER = struct.Struct(">Iq").pack


def microseconds(instant: datetime) -> int:
    """Exact microseconds since the epoch (floats would lose some)."""
    delta = instant - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


@lru_cache(maxsize=CACHED_INSTANTS_MAX)
def instant_at(microseconds_: int) -> datetime:
    """The instant so many microseconds after the epoch. `OverflowError` when there is none."""
    return _EPOCH + timedelta(microseconds=microseconds_)


@lru_cache(maxsize=CACHED_TEXTS_MAX)
def _text(value: str | None) -> bytes:
    # Streams, keys and names are those of the event before, mostly.
    if value is None:
        return ABSENT
    data = value.encode()
    return _LENGTH(len(data)) + data


def _uuid(value: UUID | None) -> bytes:
    return ABSENT if value is None else b"\0\0\0\x10" + value.bytes


@lru_cache(maxsize=CACHED_INSTANTS_MAX)
def _instant(value: datetime) -> bytes:
    # All events of an append share theirs.
    return _NUMBER(8, microseconds(value))


def chain_hash(previous: bytes, envelope: Envelope, state: bytes) -> bytes:
    """The hash of an event; `envelope.chain_hash` itself is not read."""
    return link_hash(previous, encode_event(envelope, state))


def encode_event(envelope: Envelope, state: bytes) -> bytes:
    """Everything that an event's hash covers beside the hash before it."""
    return b"".join(encode_fields(*envelope[:-1], state))


def encode_fields(
    position: int,
    stream: str,
    version: int,
    type_name: str,
    type_version: int,
    recorded_at: datetime,
    occurred_at: datetime,
    event_id: UUID,
    command_id: UUID,
    source: Provenance,
    writer_version: str,
    append_last: int,
    state: bytes,
) -> tuple[bytes, ...]:
    """Return what an event's hash covers beside the hash before it, field by field: those of its
    envelope but the hash, and its stored bytes.

    Each is a length and its bytes, as PostgreSQL has the values of a binary array.
    """
    actor = source.actor
    return (
        _NUMBER(8, position),
        _text(stream),
        _NUMBER(8, version),
        _text(type_name),
        _NUMBER(8, type_version),
        _instant(recorded_at),
        _instant(occurred_at),
        _uuid(event_id),
        _uuid(command_id),
        _text(actor.kind),
        _text(actor.token),
        _text(actor.session),
        _uuid(source.causation),
        _text(source.correlation),
        _uuid(source.run_id),
        _text(source.traceparent),
        _NUMBER(8, source.config_revision),
        _text(writer_version),
        _NUMBER(8, append_last),
        _LENGTH(len(state)) + state,
    )


def link_hash(previous: bytes, encoded: bytes | bytearray) -> bytes:
    """The hash of an event whose fields, position to state, are encoded already."""
    covered = b"".join((_FORMAT, _LENGTH(len(previous)), previous, encoded))
    return hashlib.sha256(covered).digest()

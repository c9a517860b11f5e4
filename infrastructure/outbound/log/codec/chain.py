"""Hash chain: each event's hash covers the previous hash, the whole envelope and the stored bytes.

The encoding is fixed forever under its format number: a two-byte format, then the previous hash and
each field as a four-byte length followed by its bytes (length 0xFFFFFFFF if absent). Integers are
eight bytes, big endian; instants are microseconds since 1970-01-01 UTC.
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
"""Start of PostgreSQL's timestamps."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORMAT = struct.pack(">H", CHAIN_FORMAT)
ABSENT = b"\xff\xff\xff\xff"
_LENGTH = struct.Struct(">I").pack
_NUMBER = struct.Struct(">Iq").pack


def microseconds(instant: datetime) -> int:
    """Return the exact microseconds since the epoch; a float would lose precision."""
    delta = instant - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


@lru_cache(maxsize=CACHED_INSTANTS_MAX)
def instant_at(microseconds_: int) -> datetime:
    """Return the instant this many microseconds after the epoch.

    Raises:
        OverflowError: No datetime can represent it.
    """
    return _EPOCH + timedelta(microseconds=microseconds_)


@lru_cache(maxsize=CACHED_TEXTS_MAX)
def _text(value: str | None) -> bytes:
    # Streams, keys and names mostly repeat those of the previous event.
    if value is None:
        return ABSENT
    data = value.encode()
    return _LENGTH(len(data)) + data


def _uuid(value: UUID | None) -> bytes:
    return ABSENT if value is None else b"\0\0\0\x10" + value.bytes


@lru_cache(maxsize=CACHED_INSTANTS_MAX)
def _instant(value: datetime) -> bytes:
    # All events of an append have the same instants.
    return _NUMBER(8, microseconds(value))


def chain_hash(previous: bytes, envelope: Envelope, state: bytes) -> bytes:
    """Return the hash of an event. `envelope.chain_hash` is ignored."""
    return link_hash(previous, encode_event(envelope, state))


def encode_event(envelope: Envelope, state: bytes) -> bytes:
    """Return the bytes that an event's hash covers in addition to the previous hash."""
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
    """Return the fields that an event's hash covers in addition to the previous hash: its envelope
    without the hash, and its stored bytes.

    Each is a length and its bytes, in the form of PostgreSQL's binary arrays.
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
    """Return the hash of an event whose fields, from position to state, are already encoded."""
    covered = b"".join((_FORMAT, _LENGTH(len(previous)), previous, encoded))
    return hashlib.sha256(covered).digest()

"""Conversion of file lines to rows in PostgreSQL's binary COPY format: each column is a four-byte
length followed by its bytes."""

import struct
from collections.abc import Callable, Collection, Mapping
from typing import Any

from infrastructure.outbound.log.append.store import CONTENT_COLUMNS, ENTRY_TYPES
from infrastructure.outbound.log.codec.binary import encoded
from infrastructure.outbound.log.codec.chain import YEAR_2000_MICROSECONDS
from infrastructure.outbound.log.transfer.lines import (
    AnyLine,
    ContentLine,
    EntryLine,
    EventLine,
    KeyLine,
)
from infrastructure.outbound.log.verify.rows import StoredEventRow

EVENT_COLUMNS = (
    *("position", "stream", "version", "type", "type_version", "recorded_at", "occurred_at"),
    *("event_id", "command_id", "actor_kind", "actor_token", "actor_session", "causation"),
    *("correlation", "run_id", "traceparent", "config_revision", "writer_version", "append_last"),
    *("state", "chain_hash"),
)
"""The columns of an event in the order of the hash chain, then the hash."""

_LENGTH = struct.Struct(">I")
_INT = struct.Struct(">ii").pack
_NUMBERS = struct.Struct(">ihiqiq").pack
_INSTANT = struct.Struct(">q")
_COMMIT = struct.Struct(">iqiq").pack
_HASH_LENGTH = _LENGTH.pack(32)


def event_cells(line: EventLine) -> bytes:
    """Return the row of an event. Most of its bytes are those that the chain covers. Some integers
    are shorter here, and PostgreSQL counts instants from the year 2000."""
    row, covered, revision_at = line.row, line.row.encoded, line.revision_at
    version_at = 16 + _LENGTH.unpack_from(covered, 12)[0]
    type_at = version_at + 12
    numbers_at = type_at + 4 + _LENGTH.unpack_from(covered, type_at)[0]
    ids_at = numbers_at + 36
    occurred_at = _INSTANT.unpack_from(covered, ids_at - 8)[0]
    return b"".join(
        (
            covered[:version_at],
            _INT(4, row.version),
            covered[type_at:numbers_at],
            _NUMBERS(
                *(2, row.type_version),
                *(8, row.recorded_at - YEAR_2000_MICROSECONDS),
                *(8, occurred_at - YEAR_2000_MICROSECONDS),
            ),
            covered[ids_at : revision_at - 4],
            _LENGTH.pack(4),
            covered[revision_at + 4 :],
            _HASH_LENGTH,
            row.chain_hash,
        )
    )


def commit_cells(row: StoredEventRow) -> bytes:
    """Return the row of the commit that ends with an event."""
    return _COMMIT(8, row.position, 8, row.recorded_at - YEAR_2000_MICROSECONDS)


def _key_cells(line: KeyLine) -> bytes:
    return _cells(("uuid", "bytea"), line)


def _content_cells(line: ContentLine) -> bytes:
    return _cells(CONTENT_COLUMNS.values(), (*line[:3], len(line.body.encode()), line.body))


def _entry_cells(line: EntryLine) -> bytes:
    return _cells(ENTRY_TYPES, line)


def _cells(kinds: Collection[str], row: tuple[Any, ...]) -> bytes:
    return b"".join(encoded(kind, (value,))[0] for kind, value in zip(kinds, row, strict=True))


COPIES: Mapping[type[AnyLine], tuple[str, Collection[str], Callable[[Any], bytes]]] = {
    KeyLine: ("content_keys", ("session_id", "key"), _key_cells),
    ContentLine: ("contents", tuple(CONTENT_COLUMNS), _content_cells),
    EntryLine: (
        "transcript_entries",
        ("run_id", "sequence", "recorded_at", "kind", "body"),
        _entry_cells,
    ),
}
"""For each kind of line other than events: its table, its columns, and the converter to a row."""

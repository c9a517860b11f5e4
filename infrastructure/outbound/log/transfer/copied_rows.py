"""The lines of a file as rows in PostgreSQL's binary COPY format: each column as a four-byte length
and its bytes."""

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
"""The columns of an event in the order in which the chain covers them, and the hash."""

_LENGTH = struct.Struct(">I")
_INT = struct.Struct(">ii").pack
_NUMBERS = struct.Struct(">ihiqiq").pack
_INSTANT = struct.Struct(">q")
_COMMIT = struct.Struct(">iqiq").pack
_HASH_LENGTH = _LENGTH.pack(32)


def event_cells(one: EventLine) -> bytes:
    """Return the row of an event. Most of its bytes are those that the chain covers; some numbers
    are shorter here, and PostgreSQL counts its instants from the year 2000."""
    row, covered, revision_at = one.row, one.row.encoded, one.revision_at
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
    """Return the row of the commit that ended with an event."""
    return _COMMIT(8, row.position, 8, row.recorded_at - YEAR_2000_MICROSECONDS)


def _key_cells(one: KeyLine) -> bytes:
    return _cells(("uuid", "bytea"), one)


def _content_cells(one: ContentLine) -> bytes:
    return _cells(CONTENT_COLUMNS.values(), (*one[:3], len(one.body.encode()), one.body))


def _entry_cells(one: EntryLine) -> bytes:
    return _cells(ENTRY_TYPES, one)


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
"""The table of a line that is no event, its columns, and what makes a row of the line."""

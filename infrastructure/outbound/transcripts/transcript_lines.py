"""How entries stand in rows and in files."""

import json

import orjson

from application.ports.runtimes import TranscriptEntry
from application.ports.transcripts import RecordedEntry
from domain.values.text import replace_unstorable


def stored_body(entry: TranscriptEntry) -> str:
    """The body of an entry as its row has it."""
    # PostgreSQL text cannot hold NUL, and JSON may carry it only escaped: a program can print it.
    try:
        return orjson.dumps(entry.body, default=str).decode()
    except TypeError:
        # Half of a surrogate pair, or a number of more than 64 bits.
        return replace_unstorable(json.dumps(entry.body, default=str, ensure_ascii=False))


def line_of(entry: RecordedEntry) -> bytes:
    """The line of an entry in a transcript's file; the seal is made over all of them."""
    return orjson.dumps(
        {
            "sequence": entry.sequence,
            "recordedAt": entry.recorded_at,
            "kind": entry.kind,
            **entry.body,
        },
        option=orjson.OPT_APPEND_NEWLINE,
    )

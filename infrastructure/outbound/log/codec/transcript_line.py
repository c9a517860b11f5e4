"""The line of a transcript entry, as its file has it; the seal is computed over all of them."""

import orjson

from application.ports.transcripts import RecordedEntry


def transcript_line(entry: RecordedEntry) -> bytes:
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

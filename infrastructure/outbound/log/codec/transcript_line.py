"""Line format of transcript files. The seal is computed over all lines."""

import orjson

from application.ports.transcripts import RecordedEntry


def transcript_line(entry: RecordedEntry) -> bytes:
    """Return the line of an entry in a transcript file, newline included."""
    return orjson.dumps(
        {
            "sequence": entry.sequence,
            "recordedAt": entry.recorded_at,
            "kind": entry.kind,
            **entry.body,
        },
        option=orjson.OPT_APPEND_NEWLINE,
    )

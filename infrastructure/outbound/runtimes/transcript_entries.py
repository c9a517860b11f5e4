"""A transcript entry as the port has it, from one as a line was read."""

from typing import assert_never

from application.ports.runtimes import TranscriptEntry
from domain.delivery import transcript as read
from domain.delivery.transcript import RuntimeReading
from domain.run.facts import Usage


def entry_of(entry: read.ParsedEntry) -> TranscriptEntry:
    """Kind and body; what was not said is null in the body."""
    match entry:
        case read.MessageEntry():
            return TranscriptEntry("message", {"role": entry.role, "text": entry.text})
        case read.ToolEntry():
            body = {"name": entry.name, "input": entry.input, "output": entry.output}
            return TranscriptEntry("tool", body)
        case read.UsageEntry():
            return TranscriptEntry(
                "usage",
                {
                    "inputTokens": entry.input_tokens,
                    "outputTokens": entry.output_tokens,
                    "model": entry.model,
                },
            )
        case read.ProgressEntry():
            return TranscriptEntry("progress", {"text": entry.text})
        case read.ResultEntry():
            return TranscriptEntry("result", {"text": entry.text})
        case read.TextEntry():
            return TranscriptEntry("text", {"text": entry.text})
        case _:
            assert_never(entry)


def usage_of(reading: RuntimeReading) -> Usage | None:
    """The tokens of a run; None when the runtime told none."""
    taken, given, total = reading.input_tokens, reading.output_tokens, reading.total_tokens
    if taken is None or given is None or total is None:
        return None
    return Usage(input_tokens=taken, output_tokens=given, total_tokens=total)

"""Stored transcript of an external session: one JSON object per line."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from domain.values.json_text import NotJsonError, compact_json, read_json


@dataclass(frozen=True, slots=True)
class ProvidedEntry:
    """An entry of an external transcript: its kind, and the other fields."""

    kind: str
    body: Mapping[str, object]


class InvalidTranscriptError(ValueError):
    """The stored text is not a transcript."""


def line_of(entry: ProvidedEntry) -> str:
    """Return the stored line of an entry, without a line end."""
    return compact_json({"kind": entry.kind, **entry.body})


def text_of_entries(lines: Iterable[str]) -> str:
    """Join lines into one text, each with a line end."""
    return "".join(f"{line}\n" for line in lines)


def entries_of_text(text: str) -> tuple[ProvidedEntry, ...]:
    """Parse a stored transcript.

    Raises:
        InvalidTranscriptError: A line is not a valid entry.
    """
    return tuple(map(_entry, text.split("\n")[:-1]))


def _entry(line: str) -> ProvidedEntry:
    try:
        value = read_json(line)
    except NotJsonError:
        raise InvalidTranscriptError("a line is not JSON") from None
    kind = value.pop("kind", None) if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str):
        raise InvalidTranscriptError("a line is not a transcript entry")
    return ProvidedEntry(kind, value)


def last_usage_tokens(entries: Iterable[ProvidedEntry]) -> int | None:
    """Return input plus output tokens of the last usage entry, or None if there is none."""
    found: int | None = None
    for entry in entries:
        if entry.kind == "usage":
            input_tokens, output_tokens = (
                entry.body.get("inputTokens"),
                entry.body.get("outputTokens"),
            )
            found = _count(input_tokens) + _count(output_tokens)
    return found


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0

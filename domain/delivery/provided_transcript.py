"""The transcript of a session that lives elsewhere, as it is kept: a JSON object a line."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from domain.values.json_text import NotJson, compact_json, read_json


@dataclass(frozen=True, slots=True)
class ProvidedEntry:
    """An entry of a transcript that somebody else keeps: its kind, and the rest of it."""

    kind: str
    body: Mapping[str, object]


class NotATranscript(ValueError):
    """The text that is kept of a transcript is none."""


def line_of(entry: ProvidedEntry) -> str:
    """The line by which an entry is kept, without its end."""
    return compact_json({"kind": entry.kind, **entry.body})


def text_of_entries(lines: Iterable[str]) -> str:
    """The lines as one text."""
    return "".join(f"{line}\n" for line in lines)


def entries_of_text(text: str) -> tuple[ProvidedEntry, ...]:
    """The entries of a text that is kept. `NotATranscript` for anything else."""
    return tuple(map(_entry, text.split("\n")[:-1]))


def _entry(line: str) -> ProvidedEntry:
    try:
        value = read_json(line)
    except NotJson:
        raise NotATranscript("a line is not JSON") from None
    kind = value.pop("kind", None) if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str):
        raise NotATranscript("a line is no entry")
    return ProvidedEntry(kind, value)


def last_usage_tokens(entries: Iterable[ProvidedEntry]) -> int | None:
    """The tokens of the last usage entry; None when there is none."""
    found: int | None = None
    for entry in entries:
        if entry.kind == "usage":
            taken, given = entry.body.get("inputTokens"), entry.body.get("outputTokens")
            found = _count(taken) + _count(given)
    return found


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0

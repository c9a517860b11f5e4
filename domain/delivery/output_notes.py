"""Notes that the server appends to a transcript: warnings about the output, and the end of stderr.

A note is a `progress` entry whose body names its `source`. A child cannot write one, because that
key is dropped from its output.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

NoteSource = Literal["warning", "stderr"]
NOTES_MAX = 2
_SOURCES: dict[str, NoteSource] = {"warning": "warning", "stderr": "stderr"}
_STDERR_ANNOUNCED_CHARACTERS_MAX = 900


@dataclass(frozen=True, slots=True)
class OutputNote:
    """Note about a run's output, in words that need no other context."""

    source: NoteSource
    text: str


def warning_note(warnings: Sequence[str]) -> OutputNote | None:
    """Return a note with these warnings, or None if there are none."""
    if not warnings:
        return None
    return OutputNote("warning", "\n".join(f"warning: {warning}" for warning in warnings))


def stderr_note(text: str, *, is_cut: bool) -> OutputNote | None:
    """Return a note with the end of standard error, or None if it is empty."""
    if not text:
        return None
    return OutputNote("stderr", f"standard error{' (last part)' if is_cut else ''}:\n{text}")


def note_body(note: OutputNote) -> dict[str, object]:
    """Return the body of the transcript entry."""
    return {"text": note.text, "source": note.source}


def read_notes(bodies: Sequence[Mapping[str, object]]) -> tuple[OutputNote, ...]:
    """Return the notes at the end of a transcript, given the bodies of its last entries."""
    notes: list[OutputNote] = []
    for body in reversed(bodies):
        source = _SOURCES.get(str(body.get("source")))
        if source is None:
            break
        notes.append(OutputNote(source, str(body.get("text"))))
    return tuple(reversed(notes))


def announced_notes(notes: Iterable[OutputNote], *, has_result: bool, has_error: bool) -> list[str]:
    """Return the texts of the notes to show the requester.

    Warnings are always included. Standard error is included only if the run has neither a result
    nor an error, because an error already contains the end of standard error.
    """
    return [
        _shortened(note.text) if note.source == "stderr" else note.text
        for note in notes
        if note.source == "warning" or not (has_result or has_error)
    ]


def _shortened(text: str) -> str:
    if len(text) <= _STDERR_ANNOUNCED_CHARACTERS_MAX:
        return text
    return f"standard error (last part): {text[-_STDERR_ANNOUNCED_CHARACTERS_MAX:]}"

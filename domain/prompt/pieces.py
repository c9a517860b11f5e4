"""Prompt texts assembled from pieces, with the byte range of each piece."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from domain.values.text import replace_unstorable

PromptText = Literal["systemPrompt", "message"]
SEPARATOR = "separator"


class PromptPiece(NamedTuple):
    """A piece of text with its source: `task`, `script:<id>`, `separator`, …."""

    source: str
    text: str


class TextPart(NamedTuple):
    """Byte range `[start, end)` of a text in UTF-8, with its source."""

    of: PromptText
    source: str
    start: int
    end: int

    def moved(self, by: int) -> "TextPart":
        """Return the part shifted by `by` bytes."""
        return self._replace(start=self.start + by, end=self.end + by)


class PartedText(NamedTuple):
    """A text and its parts, which cover every byte in order."""

    text: str
    parts: tuple[TextPart, ...]


def join_pieces(of: PromptText, pieces: Iterable[PromptPiece | PartedText]) -> PartedText:
    """Join pieces and previously joined texts in order. Empty pieces produce no part."""
    texts: list[str] = []
    parts: list[TextPart] = []
    at = 0
    for piece in pieces:
        if isinstance(piece, PartedText):
            texts.append(piece.text)
            parts += piece.parts if not at else [part.moved(at) for part in piece.parts]
            at = parts[-1].end if parts else 0
            continue
        text = replace_unstorable(piece.text)
        if not text:
            continue
        end = at + len(text.encode())
        texts.append(text)
        parts.append(TextPart(of=of, source=piece.source, start=at, end=end))
        at = end
    return PartedText(text="".join(texts), parts=tuple(parts))


def separate_pieces(pieces: Iterable[PromptPiece]) -> tuple[PromptPiece, ...]:
    """Return the non-empty pieces, with a blank line between each two."""
    joined: list[PromptPiece] = []
    for piece in pieces:
        if not piece.text:
            continue
        if joined:
            joined.append(PromptPiece(source=SEPARATOR, text="\n\n"))
        joined.append(piece)
    return tuple(joined)


# The task, with the contributions of context scripts before and after it.


TASK = "task"


@dataclass(frozen=True, slots=True)
class Contribution:
    """Text that a context script adds to the task."""

    script_id: str
    text: str


def task_pieces(
    task: str, *, prepend: Sequence[Contribution] = (), append: Sequence[Contribution] = ()
) -> tuple[PromptPiece, ...]:
    """Return the pieces of the message, separated by blank lines: prepended, task, appended."""
    return separate_pieces(
        (
            *(_piece(contribution) for contribution in prepend),
            PromptPiece(source=TASK, text=task),
            *(_piece(contribution) for contribution in append),
        )
    )


def task_message(
    task: str, *, prepend: Sequence[Contribution] = (), append: Sequence[Contribution] = ()
) -> PartedText:
    """Return the message `<prepended>\\n\\n<task>\\n\\n<appended>` with its parts."""
    return join_pieces("message", task_pieces(task, prepend=prepend, append=append))


def _piece(contribution: Contribution) -> PromptPiece:
    return PromptPiece(source=f"script:{contribution.script_id}", text=contribution.text)

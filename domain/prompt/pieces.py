"""Prompt texts put together from pieces, and where each piece stands in them."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from domain.values.text import replace_unstorable

PromptText = Literal["systemPrompt", "message"]
SEPARATOR = "separator"


class Piece(NamedTuple):
    """A stretch of text and where it comes from: `task`, `script:<id>`, `separator`, …."""

    source: str
    text: str


class TextPart(NamedTuple):
    """The bytes `[start, end)` of a text's UTF-8 form, and where they come from."""

    of: PromptText
    source: str
    start: int
    end: int


class PartedText(NamedTuple):
    """A text and its parts; they cover every byte of it, in order."""

    text: str
    parts: tuple[TextPart, ...]


def join_pieces(of: PromptText, pieces: Iterable[Piece]) -> PartedText:
    """The pieces one after another; empty ones leave no part."""
    texts: list[str] = []
    parts: list[TextPart] = []
    at = 0
    for piece in pieces:
        text = replace_unstorable(piece.text)
        if not text:
            continue
        end = at + len(text.encode())
        texts.append(text)
        parts.append(TextPart(of=of, source=piece.source, start=at, end=end))
        at = end
    return PartedText(text="".join(texts), parts=tuple(parts))


def separate_pieces(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """The pieces that are not empty, with an empty line between each two."""
    joined: list[Piece] = []
    for piece in pieces:
        if not piece.text:
            continue
        if joined:
            joined.append(Piece(source=SEPARATOR, text="\n\n"))
        joined.append(piece)
    return tuple(joined)

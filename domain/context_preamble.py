"""The context that a parent agent hands to its child: cut to a limit, in its own form."""

from domain.bounded_text import whole_characters

PREAMBLE_CHARACTERS_MAX = 4000
TRUNCATED = "...(truncated)"
HEADING = "[Session Context]\n[Context from parent agent]\n"
AFTER_PREAMBLE = "\n\n---\n\n"


def truncated_preamble(text: str, characters_max: int = PREAMBLE_CHARACTERS_MAX) -> str:
    """The text, or as much of it as fits `characters_max`, then `...(truncated)`.

    It is cut between words, unless more than half would be lost by that (a text without spaces),
    and never inside what a reader sees as one character. A blank text, or a limit of 0, is no
    preamble: the result is empty.
    """
    if not text.strip() or characters_max <= 0:
        return ""
    if len(text) <= characters_max:
        return text
    return text[: _cut(text, characters_max)].rstrip() + TRUNCATED


def preamble_block(preamble: str) -> str:
    """The preamble under its heading; empty when there is none."""
    return f"{HEADING}{preamble}" if preamble.strip() else ""


def _cut(text: str, limit: int) -> int:
    for index in range(limit, limit // 2, -1):
        if text[index].isspace():
            return index
    return whole_characters(text, limit)

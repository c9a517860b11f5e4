"""Context preamble that a parent agent passes to its child, cut to a limit."""

import unicodedata

from domain.run.plan_facts import PreambleSizes
from domain.values.text import whole_characters

PREAMBLE_CHARACTERS_MAX = 4000
TRUNCATED = "...(truncated)"
HEADING = "[Session Context]\n[Context from parent agent]\n"
AFTER_PREAMBLE = "\n\n---\n\n"

# Letters and a Braille pattern that are displayed as blanks.
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")


def is_blank(text: str) -> bool:
    """Return True if nothing in the text is visible: whitespace, control characters and fillers
    only.
    """
    return all(
        char.isspace() or char in _FILLERS or unicodedata.category(char) in ("Cc", "Cf")
        for char in text
    )


def truncated_preamble(text: str, characters_max: int = PREAMBLE_CHARACTERS_MAX) -> str:
    """Return the text, or its first `characters_max` characters followed by `...(truncated)`.

    The cut falls between words, unless that would lose more than half (text without spaces), and
    never inside a grapheme cluster. If the text is blank or the limit is 0, the result is empty.
    """
    if is_blank(text) or characters_max <= 0:
        return ""
    if len(text) <= characters_max:
        return text
    return text[: _cut(text, characters_max)] + TRUNCATED


def preamble_sizes(text: str, characters_max: int) -> PreambleSizes:
    """Return the sizes of the text before and after truncation, excluding the truncation mark."""
    truncated = truncated_preamble(text, characters_max)
    if truncated != text:
        truncated = truncated.removesuffix(TRUNCATED)
    return PreambleSizes(
        given_characters=len(text),
        given_bytes=len(text.encode()),
        kept_characters=len(truncated),
        kept_bytes=len(truncated.encode()),
        characters_max=characters_max,
    )


def preamble_warning(sizes: PreambleSizes, agent_id: str) -> str | None:
    """Return the caller's warning for a preamble that was cut, or None if it fits."""
    limit = f'agent "{agent_id}" allows {sizes.characters_max} (contextPreambleMaxChars)'
    given = f"contextPreamble has {sizes.given_characters} characters, and {limit}"
    if sizes.given_characters <= sizes.characters_max:
        return None
    if not sizes.kept_characters:
        return f"{given}: it was left out"
    return f"{given}: it was cut to the first {sizes.kept_characters}"


def preamble_block(preamble: str) -> str:
    """Return the preamble under its heading, or an empty string if it is blank."""
    return f"{HEADING}{preamble}" if not is_blank(preamble) else ""


def _cut(text: str, limit: int) -> int:
    for index in range(limit, (limit + 1) // 2 - 1, -1):
        if text[index].isspace() and whole_characters(text, index) == index:
            # A space may be part of the grapheme cluster before it.
            return whole_characters(text, len(text[:index].rstrip()))
    return whole_characters(text, limit)

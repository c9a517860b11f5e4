"""The context that a parent agent hands to its child: cut to a limit, in its own form."""

import unicodedata

from domain.run.plan_facts import PreambleSizes
from domain.values.text import whole_characters

PREAMBLE_CHARACTERS_MAX = 4000
TRUNCATED = "...(truncated)"
HEADING = "[Session Context]\n[Context from parent agent]\n"
AFTER_PREAMBLE = "\n\n---\n\n"

# Letters and a Braille pattern that are blank.
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")


def is_blank(text: str) -> bool:
    """Whether nothing of it is seen: spaces of every kind, signs that only control others, and
    letters without a form."""
    return all(
        sign.isspace() or sign in _FILLERS or unicodedata.category(sign) in ("Cc", "Cf")
        for sign in text
    )


def truncated_preamble(text: str, characters_max: int = PREAMBLE_CHARACTERS_MAX) -> str:
    """The text, or as much of it as fits `characters_max`, then `...(truncated)`.

    It is cut between words, unless more than half would be lost by that (a text without spaces),
    and never inside what a reader sees as one character. A blank text, or a limit of 0, is no
    preamble: the result is empty.
    """
    if is_blank(text) or characters_max <= 0:
        return ""
    if len(text) <= characters_max:
        return text
    return text[: _cut(text, characters_max)] + TRUNCATED


def preamble_sizes(text: str, characters_max: int) -> PreambleSizes:
    """How long the text is, and what is left of it within the limit, its mark not counted."""
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
    """What the caller is told of a text that was cut; None for one that was not, or is blank."""
    limit = f'agent "{agent_id}" takes {sizes.characters_max} (contextPreambleMaxChars)'
    given = f"contextPreamble has {sizes.given_characters} characters and {limit}"
    if sizes.given_characters <= sizes.characters_max:
        return None
    if not sizes.kept_characters:
        return f"{given}: nothing of it was handed over"
    return f"{given}: the first {sizes.kept_characters} were handed over"


def preamble_block(preamble: str) -> str:
    """The preamble under its heading; empty when there is none."""
    return f"{HEADING}{preamble}" if not is_blank(preamble) else ""


def _cut(text: str, limit: int) -> int:
    for index in range(limit, (limit + 1) // 2 - 1, -1):
        if text[index].isspace() and whole_characters(text, index) == index:
            # A blank may belong to the sign before it.
            return whole_characters(text, len(text[:index].rstrip()))
    return whole_characters(text, limit)

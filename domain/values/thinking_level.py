"""Thinking levels: names and synonyms."""

from typing import Literal, cast, get_args

from domain.values.text import single_line

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max", "adaptive"]
THINKING_LEVELS: tuple[ThinkingLevel, ...] = get_args(ThinkingLevel)
RAW_CHARACTERS_MAX = 100
_BY_LETTERS = {
    "adaptive": "adaptive",
    "auto": "adaptive",
    "max": "max",
    "xhigh": "xhigh",
    "extrahigh": "xhigh",
}
_SYNONYMS = {
    "off": ("off",),
    "minimal": ("min", "minimal", "think"),
    "low": ("on", "enable", "enabled", "low", "thinkhard", "think-hard", "think_hard"),
    "medium": ("mid", "med", "medium", "thinkharder", "think-harder", "harder"),
    "high": ("high", "ultra", "ultrathink", "thinkhardest", "highest"),
}
_BY_WORD = {word: level for level, words in _SYNONYMS.items() for word in words}


def normalise_thinking(raw: str) -> ThinkingLevel | None:
    """Return the thinking level that a word means, or None if it means none."""
    word = raw.strip().lower()
    letters = word.replace(" ", "").replace("_", "").replace("-", "")
    level = _BY_LETTERS.get(letters) or _BY_WORD.get(word)
    return cast("ThinkingLevel | None", level)


def invalid_thinking_text(raw: str) -> str:
    """Return the error message for an invalid thinking level."""
    shown = single_line(raw, characters_max=RAW_CHARACTERS_MAX)
    return f'Invalid thinking level "{shown}". Use one of: {", ".join(THINKING_LEVELS)}.'

"""Thinking levels: their names, their synonyms, and which one a run gets."""

from dataclasses import dataclass
from typing import Literal, cast

from domain.values.text import single_line

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max", "adaptive"]
ThinkingSource = Literal["argument", "agent_subagents", "defaults_subagents", "caller"]
LEVEL_LABELS = ("off", "minimal", "low", "medium", "high")
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


@dataclass(frozen=True, slots=True)
class ThinkingPlan:
    """The level to run with (None: the runtime's own), or why the spawn is refused, and the place
    whose word decided that; None when no place has one."""

    level: ThinkingLevel | None
    error: str | None = None
    source: ThinkingSource | None = None


def normalise_thinking(raw: str) -> ThinkingLevel | None:
    """The level a word stands for, or None for a word that stands for none."""
    word = raw.strip().lower()
    letters = word.replace(" ", "").replace("_", "").replace("-", "")
    level = _BY_LETTERS.get(letters) or _BY_WORD.get(word)
    return cast("ThinkingLevel | None", level)


def invalid_thinking_text(raw: str) -> str:
    """What a caller is told."""
    shown = single_line(raw, characters_max=RAW_CHARACTERS_MAX)
    return f'Invalid thinking level "{shown}". Use one of: {", ".join(LEVEL_LABELS)}.'


def plan_thinking(
    *,
    argument: str | None,
    agent_subagents: str | None,
    defaults_subagents: str | None,
    caller_active: str | None = None,
) -> ThinkingPlan:
    """The first that is not blank decides; a word that is no level refuses the spawn.

    `caller_active` is the level its caller runs with, for a child that is the same agent; it was
    not asked for, so it refuses nothing.
    """
    asked: tuple[tuple[ThinkingSource, str | None], ...] = (
        ("argument", argument),
        ("agent_subagents", agent_subagents),
        ("defaults_subagents", defaults_subagents),
    )
    for source, raw in asked:
        if raw is None or not raw.strip():
            continue
        level = normalise_thinking(raw)
        error = invalid_thinking_text(raw) if level is None else None
        return ThinkingPlan(level=level, error=error, source=source)
    inherited = normalise_thinking(caller_active or "")
    return ThinkingPlan(level=inherited, source="caller" if inherited else None)

"""Thinking levels: their names, their synonyms, and which one a run gets."""

from dataclasses import dataclass
from typing import Literal

from domain.values.thinking_level import ThinkingLevel, invalid_thinking_text, normalise_thinking

ThinkingSource = Literal["argument", "agent_subagents", "defaults_subagents", "caller"]


@dataclass(frozen=True, slots=True)
class ThinkingPlan:
    """The level to run with (None: the runtime's own), or why the spawn is refused, and the place
    whose word decided that; None when no place has one."""

    level: ThinkingLevel | None
    error: str | None = None
    source: ThinkingSource | None = None


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
    candidates: tuple[tuple[ThinkingSource, str | None], ...] = (
        ("argument", argument),
        ("agent_subagents", agent_subagents),
        ("defaults_subagents", defaults_subagents),
    )
    for source, raw in candidates:
        if raw is None or not raw.strip():
            continue
        level = normalise_thinking(raw)
        error = invalid_thinking_text(raw) if level is None else None
        return ThinkingPlan(level=level, error=error, source=source)
    inherited = normalise_thinking(caller_active or "")
    return ThinkingPlan(level=inherited, source="caller" if inherited else None)

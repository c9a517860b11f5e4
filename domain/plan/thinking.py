"""Choice of a run's thinking level."""

from dataclasses import dataclass
from typing import Literal

from domain.values.thinking_level import ThinkingLevel, invalid_thinking_text, normalise_thinking

ThinkingSource = Literal["argument", "agent_subagents", "defaults_subagents", "caller"]


@dataclass(frozen=True, slots=True)
class ThinkingPlan:
    """The thinking level of a run, or the error that refuses the spawn.

    Attributes:
        level: The level; None leaves the choice to the runtime.
        error: Message for the caller if the word is not a level.
        source: Place that decided; None if no place names a level.
    """

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
    """Choose the first level that is not blank. An invalid word refuses the spawn.

    Args:
        argument: Level named by the request.
        agent_subagents: Level of the agent's subagents section.
        defaults_subagents: Level of the default subagents section.
        caller_active: Level of the caller, if the child is the same agent. An invalid one is
            ignored, because the request did not name it.
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

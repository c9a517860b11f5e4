"""The `subagents` sections: what holds for every sub-agent, and what one agent says otherwise."""

from typing import Annotated, Literal

from pydantic import Field

from domain.configuration.context_scripts import ContextScripts, DefaultContextScripts
from domain.configuration.models import ModelChoice
from domain.configuration.sections import Flag, OwnSection, Text, Whole

PreambleLimit = Annotated[Whole, Field(ge=0, le=100_000)]
DelegationMode = Literal["suggest", "prefer"]


class SubagentDefaults(OwnSection):
    """`agents.defaults.subagents`."""

    allow_agents: tuple[Text, ...] | None = None
    require_agent_id: Flag = False
    max_concurrent: Annotated[Whole, Field(ge=1, le=10_000)] = 8
    max_spawn_depth: Annotated[Whole, Field(ge=1, le=5)] = 1
    max_children_per_agent: Annotated[Whole, Field(ge=1, le=20)] = 5
    archive_after_minutes: Annotated[Whole, Field(ge=0, le=52_560_000)] = 60
    model: ModelChoice | None = None
    thinking: Text | None = None
    run_timeout_seconds: Annotated[Whole, Field(ge=0, le=315_360_000)] = 0
    announce_timeout_ms: Annotated[Whole, Field(ge=1, le=86_400_000)] = 120_000
    context_scripts: DefaultContextScripts = Field(default_factory=DefaultContextScripts)
    context_preamble_max_chars: PreambleLimit = 4000
    # Belongs to the orchestrator's own prompt, which spawnlog does not write.
    delegation_mode: DelegationMode | None = None


class AgentSubagents(OwnSection):
    """`agents.list[].subagents`; what it does not say, the defaults say."""

    allow_agents: tuple[Text, ...] | None = None
    require_agent_id: Flag | None = None
    model: ModelChoice | None = None
    thinking: Text | None = None
    context_scripts: ContextScripts = Field(default_factory=ContextScripts)
    context_preamble_max_chars: PreambleLimit | None = None
    delegation_mode: DelegationMode | None = None

"""The `agents` section: the configured agents and their defaults."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from domain.configuration.context_scripts import (
    SCRIPTS_MAX,
    ContextScripts,
    DefaultContextScripts,
    resolve_scripts,
)
from domain.configuration.models import ModelChoice, ModelEntry
from domain.configuration.problems import pointer_of
from domain.configuration.runtimes import Runtime
from domain.configuration.sections import (
    Flag,
    NameText,
    OwnSection,
    SharedSection,
    Text,
    Whole,
    section_error,
)
from domain.values.agent_id import is_valid_agent_id, normalise_agent_id
from domain.values.runtime_types import SandboxMode

ANY_AGENT = "*"
ALLOWED_REMEMBERED_MAX = 256


@dataclass(frozen=True, slots=True)
class BootstrapLimits:
    """Size limits of bootstrap files, in characters (code points).

    `chars_max` is per file, `total_chars_max` for all files. The truncation mark does not count.
    """

    chars_max: int
    total_chars_max: int


# The `subagents` sections: defaults for all sub-agents, and overrides of one agent.


PreambleLimit = Annotated[Whole, Field(ge=0, le=100_000)]
DelegationMode = Literal["suggest", "prefer"]


RUN_TIMEOUT_SECONDS_MAX = 2_147_000
"""Maximum run timeout: 24 days, the range of a 32-bit timer in milliseconds. A longer one is
capped.
"""


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
    # Accepted but unused: it affects the orchestrator's prompt, which spawnlog does not write.
    delegation_mode: DelegationMode | None = None


class AgentSubagents(OwnSection):
    """`agents.list[].subagents`. Unset values come from the defaults."""

    allow_agents: tuple[Text, ...] | None = None
    require_agent_id: Flag | None = None
    model: ModelChoice | None = None
    thinking: Text | None = None
    context_scripts: ContextScripts = Field(default_factory=ContextScripts)
    context_preamble_max_chars: PreambleLimit | None = None
    delegation_mode: DelegationMode | None = None


BootstrapChars = Annotated[Whole, Field(ge=1, le=1_000_000)]
BootstrapTotalChars = Annotated[Whole, Field(ge=1, le=10_000_000)]


def read_agent_id(text: str, at: str | None = None) -> str:
    """Validate an agent id and return it in lower case.

    Args:
        text: The id.
        at: Path of the value that an error points to.

    Raises:
        PydanticCustomError: `text` is not an agent id.
    """
    if not is_valid_agent_id(text):
        message = (
            "an agent id is 1 to 64 letters, digits, underscores and hyphens, "
            "the first a letter or digit"
        )
        raise section_error("agent_id", message, at)
    return normalise_agent_id(text)


class Sandbox(SharedSection):
    """Sandbox settings of an agent's sessions."""

    mode: SandboxMode | None = None


class AgentEntry(SharedSection):
    """A value of `agents.entries`, whose key is the agent's id."""

    name: Text | None = None
    default: Flag = False
    workspace: NameText | None = None
    agent_dir: NameText | None = None
    bootstrap_max_chars: BootstrapChars | None = None
    bootstrap_total_max_chars: BootstrapTotalChars | None = None
    model: ModelChoice | None = None
    thinking_default: Text | None = None
    sandbox: Sandbox = Field(default_factory=Sandbox)
    tools: dict[str, Any] = Field(default_factory=dict, repr=False)
    subagents: AgentSubagents = Field(default_factory=AgentSubagents)
    runtime: Runtime | None = None


class AgentId(SharedSection):
    """The id of an item of `agents.list`, in lower case."""

    id: Annotated[Text, AfterValidator(read_agent_id)]


class Agent(AgentEntry, AgentId):
    """An item of `agents.list`. `AgentId` is the last base so that `id` is the first field."""


class SystemAgent(SharedSection):
    """The agent to use if none is named."""

    agent_id: Text | None = None


class AgentDefaults(SharedSection):
    """`agents.defaults`. Keys of `models` are `provider/model`; the entries define aliases."""

    workspace: NameText | None = None
    bootstrap_max_chars: BootstrapChars = 20_000
    bootstrap_total_max_chars: BootstrapTotalChars = 150_000
    model: ModelChoice | None = None
    models: dict[str, ModelEntry] = Field(default_factory=dict)
    thinking_default: Text | None = None
    sandbox: Sandbox = Field(default_factory=Sandbox)
    subagents: SubagentDefaults = Field(default_factory=SubagentDefaults)
    runtime: Runtime | None = None
    system_agent: SystemAgent | None = None


AgentPath = tuple[str | int, ...]


class Agents(OwnSection):
    """The `agents` section.

    Agents are in `list` or, as OpenClaw writes them since 2026.8, in `entries` by agent id.
    `ownership` is used by the OpenClaw gateway only: it decides which agent answers a channel.
    """

    defaults: AgentDefaults = Field(default_factory=AgentDefaults)
    list: tuple[Agent, ...] = ()
    entries: dict[Text, AgentEntry] | None = None
    ownership: Text | None = None

    @property
    def roster(self) -> tuple[Agent, ...]:
        """Return the agents in file order."""
        return tuple(agent for _, agent in self.placed)

    @cached_property
    def placed(self) -> tuple[tuple[AgentPath, Agent], ...]:
        """Return the agents in file order, each with its path."""
        if self.entries is None:
            return tuple((("agents", "list", at), agent) for at, agent in enumerate(self.list))
        return tuple(
            (("agents", "entries", key), _agent_of(key, entry))
            for key, entry in self.entries.items()
        )

    @field_validator("list", mode="after")
    @classmethod
    def _require_distinct_ids(cls, agents: tuple[Agent, ...]) -> tuple[Agent, ...]:
        _require_distinct((agent.id, f"{index}/id") for index, agent in enumerate(agents))
        return agents

    @field_validator("entries", mode="after")
    @classmethod
    def _require_distinct_keys(
        cls, entries: dict[str, AgentEntry] | None
    ) -> dict[str, AgentEntry] | None:
        _require_distinct(
            (read_agent_id(key, pointer_of([key])[1:]), pointer_of([key])[1:])
            for key in entries or ()
        )
        return entries

    @model_validator(mode="after")
    def _require_one_roster(self) -> Self:
        if self.entries is not None and "list" in self.model_fields_set:
            message = "names agents beside agents.list; keep one of the two"
            raise section_error("agents", message, at="entries")
        return self

    @model_validator(mode="after")
    def _require_few_scripts(self) -> Self:
        defaults = self.defaults.subagents.context_scripts.run
        for path, agent in self.placed:
            own = agent.subagents.context_scripts
            count = len(resolve_scripts(defaults, own.run, own.ignore))
            if count > SCRIPTS_MAX:
                message = (
                    f'{count} scripts would run for agent "{agent.id}", and at most {SCRIPTS_MAX}'
                    " may; ignore some of the defaults"
                )
                at = pointer_of((*path[1:], "subagents", "contextScripts"))[1:]
                raise section_error("context_scripts", message, at=at)
        return self


def _agent_of(key: str, entry: AgentEntry) -> Agent:
    values = {name: getattr(entry, name) for name in AgentEntry.model_fields}
    values |= {**(entry.model_extra or {}), "id": normalise_agent_id(key)}
    return Agent.model_construct({"id", *entry.model_fields_set}, **values)


def _require_distinct(ids: Iterable[tuple[str, str]]) -> None:
    seen: set[str] = set()
    for agent_id, at in ids:
        if agent_id in seen:
            message = f'there is another agent "{agent_id}"; ids differ in more than case'
            raise section_error("agent_id", message, at=at)
        seen.add(agent_id)


def is_sandboxed(mode: SandboxMode, session_key: str, main_session_key: str) -> bool:
    """Return True if the sandbox mode applies to a session.

    `off` applies to none, `all` to every session, `non-main` to all except the agent's main
    session. Both keys are canonical.
    """
    return mode == "all" or (mode == "non-main" and session_key != main_session_key)


@lru_cache(maxsize=ALLOWED_REMEMBERED_MAX)
def allowed_agents(
    requester_agent_id: str, allow_agents: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    """Return the agent ids that the requester may name, sorted. None means any.

    Without a list, the requester may only name itself.
    """
    if allow_agents is None:
        return (normalise_agent_id(requester_agent_id),)
    names = [name.strip() for name in allow_agents]
    if ANY_AGENT in names:
        return None
    return tuple(sorted({normalise_agent_id(name) for name in names if name}))

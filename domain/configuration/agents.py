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
    """Agents that may be spawned; `"*"` means any. Unset: only the agent itself. Example:
    `["writer", "reviewer"]`
    """

    require_agent_id: Flag = False
    """If true, a spawn must name its agent."""

    max_concurrent: Annotated[Whole, Field(ge=1, le=10_000)] = 8
    """Runs that execute at the same time, at each depth; others wait in the queue."""

    max_spawn_depth: Annotated[Whole, Field(ge=1, le=5)] = 1
    """Levels of sub-agents. 1: children have no children."""

    max_children_per_agent: Annotated[Whole, Field(ge=1, le=20)] = 5
    """Active children of one session. The rule `active_children` refuses the next one."""

    archive_after_minutes: Annotated[Whole, Field(ge=0, le=52_560_000)] = 60
    """Minutes from the end of a run until it is archived; 0: never."""

    model: ModelChoice | None = None
    """Model of children. Example: `{ primary: "openai/gpt-5", fallbacks: ["p/small"] }`"""

    thinking: Text | None = None
    """Thinking level of children: `off`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max` or
    `adaptive`. Example: `"low"`
    """

    run_timeout_seconds: Annotated[Whole, Field(ge=0, le=315_360_000)] = 0
    """Time limit of a run in seconds; 0: none. More than 2,147,000 (24 days) is reduced to
    that, with a warning.
    """

    announce_timeout_ms: Annotated[Whole, Field(ge=1, le=86_400_000)] = 120_000
    """No effect: read for OpenClaw."""

    context_scripts: DefaultContextScripts = Field(default_factory=DefaultContextScripts)
    """Scripts that run before each spawn."""

    context_preamble_max_chars: PreambleLimit = 4000
    """Characters of a preamble that a child gets; 0: none."""

    # Accepted but unused: it affects the orchestrator's prompt, which spawnlog does not write.
    delegation_mode: DelegationMode | None = None
    """No effect: it belongs to the prompt of the orchestrator, which spawnlog does not write."""


class AgentSubagents(OwnSection):
    """`agents.list[].subagents`. Unset values come from the defaults."""

    allow_agents: tuple[Text, ...] | None = None
    """Agents that this agent may spawn; `"*"` means any. Example: `["writer"]`"""

    require_agent_id: Flag | None = None
    """If true, a spawn of this agent must name an agent."""

    model: ModelChoice | None = None
    """Model of the children that run as this agent. Example: `"openai/gpt-5"`"""

    thinking: Text | None = None
    """Thinking level of the children that run as this agent. Example: `"high"`"""

    context_scripts: ContextScripts = Field(default_factory=ContextScripts)
    """Scripts for spawns of this agent, beside the defaults."""

    context_preamble_max_chars: PreambleLimit | None = None
    """Characters of a preamble; 0: none."""

    delegation_mode: DelegationMode | None = None
    """No effect."""


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
    """Sessions that must be in a sandbox; their children need a runtime with `providesSandbox`.
    `non-main`: all but the agent's main session. Unset: `off`.
    """


class AgentEntry(SharedSection):
    """A value of `agents.entries`, whose key is the agent's id."""

    name: Text | None = None
    """Name for people. Example: `"Writer"`"""

    default: Flag = False
    """The default agent, which `main` means. Without one: `systemAgent`, else the first agent."""

    workspace: NameText | None = None
    """Folder in which it works, relative to the file. Unset: a folder in the data directory.
    Example: `"/srv/project"`
    """

    agent_dir: NameText | None = None
    """Folder of its credentials. Unset: a folder in the data directory. Example:
    `"/etc/spawnlog/writer"`
    """

    bootstrap_max_chars: BootstrapChars | None = None
    """Characters of `AGENTS.md` and of `TOOLS.md` that a child gets, of each."""

    bootstrap_total_max_chars: BootstrapTotalChars | None = None
    """The same of both together."""

    model: ModelChoice | None = None
    """Model of the agent; `subagents.model` counts first. Example: `"openai/gpt-5"`"""

    thinking_default: Text | None = None
    """No effect: a command has a setting of its own."""

    sandbox: Sandbox = Field(default_factory=Sandbox)
    """Whether its sessions must be in a sandbox."""

    tools: dict[str, Any] = Field(default_factory=dict, repr=False)
    """No effect: a command has a setting of its own."""

    subagents: AgentSubagents = Field(default_factory=AgentSubagents)
    """Rules for its children."""

    runtime: Runtime | None = None
    """Runtime of its runs. Unset: `agents.defaults.runtime`. Without either, a spawn is refused."""


class AgentId(SharedSection):
    """The id of an item of `agents.list`, in lower case."""

    id: Annotated[Text, AfterValidator(read_agent_id)]
    """Id: 1 to 64 letters, digits, `_` and `-`, in any case. Example: `"writer"`"""


class Agent(AgentEntry, AgentId):
    """An item of `agents.list`. `AgentId` is the last base so that `id` is the first field."""


class SystemAgent(SharedSection):
    """The agent to use if none is named."""

    agent_id: Text | None = None
    """The default agent if no agent of the list has `default: true`. Example: `"main"`"""


class AgentDefaults(SharedSection):
    """`agents.defaults`. Keys of `models` are `provider/model`; the entries define aliases."""

    workspace: NameText | None = None
    """Workspace of the default agent, if it has none; another agent without one works in a folder
    of the data directory. Example: `"/srv/project"`"""

    bootstrap_max_chars: BootstrapChars = 20_000
    """Characters of `AGENTS.md` and of `TOOLS.md` that a child gets, of each."""

    bootstrap_total_max_chars: BootstrapTotalChars = 150_000
    """The same of both together. The agent's own files count first."""

    model: ModelChoice | None = None
    """Model of agents without one. Example: `"openai/gpt-5"`"""

    models: dict[str, ModelEntry] = Field(default_factory=dict)
    """Known models by `provider/model`, with their aliases. Example: `{ "openai/gpt-5": {
    alias: "big" } }`
    """

    thinking_default: Text | None = None
    """No effect."""

    sandbox: Sandbox = Field(default_factory=Sandbox)
    """Default for all agents."""

    subagents: SubagentDefaults = Field(default_factory=SubagentDefaults)
    """Defaults for all sub-agents."""

    runtime: Runtime | None = None
    """Runtime of agents without one."""

    system_agent: SystemAgent | None = None
    """The agent for requests that name none."""


AgentPath = tuple[str | int, ...]


class Agents(OwnSection):
    """The `agents` section.

    Agents are in `list` or, as OpenClaw writes them since 2026.8, in `entries` by agent id.
    `ownership` is used by the OpenClaw gateway only: it decides which agent answers a channel.
    """

    defaults: AgentDefaults = Field(default_factory=AgentDefaults)
    """Values for all agents."""

    list: tuple[Agent, ...] = ()
    """The agents. Without any: one agent `main`."""

    entries: dict[Text, AgentEntry] | None = None
    """The agents by id, as OpenClaw writes them since 2026.8; instead of `list`. Example: `{
    main: { default: true } }`
    """

    ownership: Text | None = None
    """No effect: read for OpenClaw."""

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
            message = "cannot be combined with agents.list; keep one of the two"
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
                    f'agent "{agent.id}" has {count} scripts, but at most {SCRIPTS_MAX} are'
                    " allowed; list some of the defaults in `ignore`"
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
            message = f'there is another agent "{agent_id}"; ids must differ in more than case'
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

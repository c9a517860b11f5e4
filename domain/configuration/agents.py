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
    """Maximum number of runs that execute at the same time, at each depth; others wait in the
    queue.
    """

    max_spawn_depth: Annotated[Whole, Field(ge=1, le=5)] = 1
    """Maximum depth of sub-agents. 1: children may not spawn children."""

    max_children_per_agent: Annotated[Whole, Field(ge=1, le=20)] = 5
    """Maximum number of active children of one session. The rule `active_children` refuses
    more.
    """

    archive_after_minutes: Annotated[Whole, Field(ge=0, le=52_560_000)] = 60
    """Minutes from the end of a run until it is archived. 0: never."""

    model: ModelChoice | None = None
    """Model of children, unless the spawn or the agent's own `subagents.model` names one. Example:
    `{ primary: "openai/gpt-5", fallbacks: ["p/small"] }`
    """

    thinking: Text | None = None
    """Default thinking level of children: `off`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`
    or `adaptive`. Example: `"low"`
    """

    run_timeout_seconds: Annotated[Whole, Field(ge=0, le=315_360_000)] = 0
    """Time limit of a run in seconds. 0: none. A larger value than 2,147,000 (24 days) is reduced
    to that, with a warning.
    """

    announce_timeout_ms: Annotated[Whole, Field(ge=1, le=86_400_000)] = 120_000
    """No effect; accepted because OpenClaw has it."""

    context_scripts: DefaultContextScripts = Field(default_factory=DefaultContextScripts)
    """Scripts that run before each spawn."""

    context_preamble_max_chars: PreambleLimit = 4000
    """Maximum characters of a preamble; a longer one is truncated, with a warning. 0: children get
    no preamble.
    """

    # Accepted but unused: it affects the orchestrator's prompt, which spawnlog does not write.
    delegation_mode: DelegationMode | None = None
    """No effect; it changes the prompt of the orchestrator, which spawnlog does not write."""


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
    """Scripts for spawns of this agent, in addition to the defaults."""

    context_preamble_max_chars: PreambleLimit | None = None
    """Maximum characters of a preamble for children that run as this agent; a longer one is
    truncated, with a warning. 0: none.
    """

    delegation_mode: DelegationMode | None = None
    """No effect; see the defaults."""


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
    """Which sessions must be in a sandbox; their children need a runtime with `providesSandbox`.
    `all`: every session. `non-main`: all except the agent's main session. Unset: `off`.
    """


class AgentEntry(SharedSection):
    """A value of `agents.entries`, whose key is the agent's id."""

    name: Text | None = None
    """Display name. Example: `"Writer"`"""

    default: Flag = False
    """If true, this is the default agent, which `main` means. Without one: `systemAgent`, else the
    first agent.
    """

    workspace: NameText | None = None
    """Folder in which its runs work; a relative path starts at the configuration file. Unset: a
    folder in the data directory. Example: `"/srv/project"`
    """

    agent_dir: NameText | None = None
    """Folder with its credentials. Unset: a folder in the data directory. Example:
    `"/etc/spawnlog/writer"`
    """

    bootstrap_max_chars: BootstrapChars | None = None
    """Maximum characters of `AGENTS.md`, and of `TOOLS.md`, in a child's prompt; the rest is cut,
    with a warning.
    """

    bootstrap_total_max_chars: BootstrapTotalChars | None = None
    """Maximum characters of both files together."""

    model: ModelChoice | None = None
    """Model of the agent's runs. `subagents.model` takes precedence. Example: `"openai/gpt-5"`"""

    thinking_default: Text | None = None
    """No effect; configure it in the program that the agent runs."""

    sandbox: Sandbox = Field(default_factory=Sandbox)
    """Sandbox rule for its sessions."""

    tools: dict[str, Any] = Field(default_factory=dict, repr=False)
    """No effect; configure it in the program that the agent runs."""

    subagents: AgentSubagents = Field(default_factory=AgentSubagents)
    """Settings for its children, and for children that run as this agent."""

    runtime: Runtime | None = None
    """What executes its runs. Unset: `agents.defaults.runtime`. Without either, a spawn is
    refused.
    """


class AgentId(SharedSection):
    """The id of an item of `agents.list`, in lower case."""

    id: Annotated[Text, AfterValidator(read_agent_id)]
    """Id of 1 to 64 letters, digits, `_` and `-`; case is ignored. Example: `"writer"`"""


class Agent(AgentEntry, AgentId):
    """An item of `agents.list`. `AgentId` is the last base so that `id` is the first field."""


class SystemAgent(SharedSection):
    """`agents.defaults.systemAgent`: the default agent."""

    agent_id: Text | None = None
    """Default agent if no agent has `default: true`. Example: `"main"`"""


class AgentDefaults(SharedSection):
    """`agents.defaults`. Keys of `models` are `provider/model`; the entries define aliases."""

    workspace: NameText | None = None
    """Workspace of the default agent if that has none of its own. Any other agent without a
    workspace works in a folder of the data directory. Example: `"/srv/project"`"""

    bootstrap_max_chars: BootstrapChars = 20_000
    """Maximum characters of `AGENTS.md`, and of `TOOLS.md`, in a child's prompt; the rest is cut,
    with a warning.
    """

    bootstrap_total_max_chars: BootstrapTotalChars = 150_000
    """Maximum characters of both files together. `AGENTS.md` comes first."""

    model: ModelChoice | None = None
    """Model of agents that set none. Example: `"openai/gpt-5"`"""

    models: dict[str, ModelEntry] = Field(default_factory=dict)
    """Known models, by `provider/model`, with their aliases. Example: `{ "openai/gpt-5": {
    alias: "big" } }`
    """

    thinking_default: Text | None = None
    """No effect; use `subagents.thinking`."""

    sandbox: Sandbox = Field(default_factory=Sandbox)
    """Default for all agents."""

    subagents: SubagentDefaults = Field(default_factory=SubagentDefaults)
    """Defaults for all sub-agents."""

    runtime: Runtime | None = None
    """Runtime of agents that set none."""

    system_agent: SystemAgent | None = None
    """The agent for requests that name none."""


AgentPath = tuple[str | int, ...]


class Agents(OwnSection):
    """The `agents` section.

    Agents are in `list` or, as OpenClaw writes them since 2026.8, in `entries` by agent id.
    `ownership` is used by the OpenClaw gateway only: it decides which agent answers a channel.
    """

    defaults: AgentDefaults = Field(default_factory=AgentDefaults)
    """Defaults for all agents."""

    list: tuple[Agent, ...] = ()
    """The agents. Empty: one agent `main`."""

    entries: dict[Text, AgentEntry] | None = None
    """The agents by id, as OpenClaw writes them since 2026.8. Cannot be combined with `list`.
    Example: `{
    main: { default: true } }`
    """

    ownership: Text | None = None
    """No effect; accepted because OpenClaw has it."""

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

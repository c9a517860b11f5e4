"""The whole configuration, and queries on it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import Field

from domain.configuration.agents import (
    Agent,
    AgentDefaults,
    Agents,
    AgentSubagents,
    BootstrapLimits,
    SubagentDefaults,
    is_sandboxed,
)
from domain.configuration.context_scripts import ContextScript, resolve_scripts
from domain.configuration.models import (
    ModelChoice,
    Models,
    ModelSetting,
    ModelSettings,
)
from domain.configuration.runtimes import CommandRuntime, Runtime
from domain.configuration.sections import SharedSection
from domain.configuration.session import SessionSection, ThreadPolicy, thread_policy
from domain.configuration.settings import Settings
from domain.configuration.tools import ConfiguredToolPolicy, Tools
from domain.values.agent_id import DEFAULT_AGENT_ID, is_valid_agent_id, normalise_agent_id
from domain.values.runtime_types import SandboxMode
from domain.values.session_key import MAIN, SessionKey, canonical_session_key
from domain.values.sources import ConfiguredAt

UNLISTED_REMEMBERED_MAX = 100
"""Cache size for unlisted agent ids, which may be arbitrary names."""


@dataclass(frozen=True)
class EffectiveSubagents:
    """Sub-agent settings of one agent, after applying the defaults.

    Attributes:
        allow_agents: Agents that it may spawn; None allows only the agent itself.
        require_agent_id: True if a spawn must name an agent.
        context_preamble_max_chars: Limit of the context preamble.
        allow_agents_from: Source of `allow_agents`; None if it is not configured.
        require_agent_id_from: Source of `require_agent_id`; None if it is not configured.
    """

    allow_agents: tuple[str, ...] | None
    require_agent_id: bool
    context_preamble_max_chars: int
    allow_agents_from: ConfiguredAt | None = None
    require_agent_id_from: ConfiguredAt | None = None


@dataclass(frozen=True)
class AgentFolder:
    """Folder for an agent's own files. `path` None means its place in the data directory."""

    agent_id: str
    path: str | None


@dataclass(frozen=True, kw_only=True)
class EffectiveAgent:
    """Settings for the children of one agent, after applying the defaults.

    Resolved once, and used both for planning runs and for showing the configuration, so that the
    two always agree. An agent that is not configured has the defaults.

    Attributes:
        workspace: None means a folder of its own in the data directory.
        main_folder: Folder of the default agent.
        thinking: The agent's own setting, without the defaults.
        defaults: Limits that are the same for all agents.
        context_scripts: Scripts for a spawn of this agent, in execution order, each with its
            timeout.
    """

    id: str
    name: str | None
    is_configured: bool
    runtime: Runtime | None
    sandbox_mode: SandboxMode
    workspace: str | None
    folder: AgentFolder
    main_folder: AgentFolder
    thinking: str | None
    subagents: EffectiveSubagents
    defaults: SubagentDefaults
    bootstrap: BootstrapLimits
    context_scripts: tuple[ContextScript, ...]
    tools: ConfiguredToolPolicy
    model: str | None
    model_settings: ModelSettings
    aliases: Mapping[str, str]
    known_models: tuple[str, ...]
    models: Models

    def __hash__(self) -> int:
        """Hash by id; equality compares all fields."""
        return hash(self.id)

    @property
    def delivers_to_origin(self) -> bool:
        """Return True if the runtime itself delivers results to the session's thread."""
        return isinstance(self.runtime, CommandRuntime) and self.runtime.delivers_to_origin


class Configuration(SharedSection):
    """A configuration. Sections of other programs are kept in `extra`."""

    agents: Agents = Field(default_factory=Agents)
    """The agents, and the defaults for all of them."""

    tools: Tools = Field(default_factory=Tools)
    """Tool policy of sub-agents, and attachments."""

    models: Models = Field(default_factory=Models)
    """Prices of models."""

    session: SessionSection = Field(default_factory=SessionSection)
    """Main session and threads."""

    spawnlog: Settings = Field(default_factory=Settings)
    """The server itself."""

    @classmethod
    def builtin(cls) -> "Configuration":
        """Return the configuration used without a file: one agent `main` that echoes its prompt.

        Its runtime is the program `cat`, so runs work end to end without a model.
        """
        runtime = CommandRuntime(type="command", command=("cat",), input="stdin-text")
        return cls(agents=Agents(list=(Agent(id=DEFAULT_AGENT_ID, runtime=runtime),)))

    @property
    def extra(self) -> dict[str, Any]:
        """Return the sections that spawnlog does not read, unchanged."""
        return dict(self.model_extra or {})

    @property
    def subagent_defaults(self) -> SubagentDefaults:
        """Return `agents.defaults.subagents`, whose limits are the same for all agents."""
        return self.agents.defaults.subagents

    def agent(self, agent_id: str) -> Agent | None:
        """Return the agent with this id, in any case, or None.

        If no agents are listed, `main` exists.
        """
        listed = self._listed.get(agent_id)
        if listed is not None:
            return listed
        if not is_valid_agent_id(agent_id):
            return None
        normalised = normalise_agent_id(agent_id)
        listed = self._listed.get(normalised)
        if listed is not None:
            return listed
        return (
            Agent(id=normalised)
            if not self.agents.roster and normalised == DEFAULT_AGENT_ID
            else None
        )

    @cached_property
    def _listed(self) -> dict[str, Agent]:
        """Return agents by id. If an id occurs twice, the first wins."""
        return {agent.id: agent for agent in reversed(self.agents.roster)}

    def agent_ids(self) -> tuple[str, ...]:
        """Return the ids of all agents, in file order."""
        return self._agent_ids

    @cached_property
    def _agent_ids(self) -> tuple[str, ...]:
        return tuple(agent.id for agent in self.agents.roster) or (DEFAULT_AGENT_ID,)

    @cached_property
    def default_agent_id(self) -> str:
        """Return the agent to use if none is named.

        That is the first one marked as default, else the configured `systemAgent`, else the first
        one, else `main`.
        """
        marked = next((agent.id for agent in self.agents.roster if agent.default), None)
        system = self.agents.defaults.system_agent
        named = system.agent_id if system is not None else None
        if marked is None and named is not None and self.agent(named) is not None:
            return normalise_agent_id(named)
        return marked or self.agent_ids()[0]

    def canonical_key(self, spelling: str, default_agent_id: str | None = None) -> SessionKey:
        """Return the canonical form of a session key.

        Args:
            spelling: Key as written. `main`, and keys that name no agent, belong to the default
                agent.
            default_agent_id: Default agent to use instead of the configured one.

        Raises:
            InvalidSessionKeyError: `spelling` is not a session key.
        """
        return canonical_session_key(
            spelling,
            main_key=self.session.main_key,
            scope=self.session.scope,
            default_agent_id=self.default_agent_id
            if default_agent_id is None
            else default_agent_id,
        )

    def effective_agent(self, agent_id: str) -> EffectiveAgent:
        """Return the resolved settings for the children of this agent."""
        known = self._resolved.get(agent_id)
        if known is not None:
            return known
        configured = self.agent(agent_id)
        if configured is None:
            unlisted = self._resolve(None, agent_id)
            if len(self._resolved) < len(self._listed) + UNLISTED_REMEMBERED_MAX:
                self._resolved[agent_id] = unlisted
            return unlisted
        resolved = self._resolved.get(configured.id)
        if resolved is None:
            resolved = self._resolved[configured.id] = self._resolve(configured, configured.id)
        return resolved

    @cached_property
    def _resolved(self) -> dict[str, EffectiveAgent]:
        """Cache of effective agents. It never needs invalidation, because a configuration is
        immutable.
        """
        return {}

    def _resolve(self, configured: Agent | None, agent_id: str) -> EffectiveAgent:
        defaults = self.agents.defaults
        agent = configured or Agent.model_construct(id=agent_id)
        main_id = self.default_agent_id
        main = agent if agent.id == main_id else self.agent(main_id)
        # The defaults' workspace is for the default agent only: agents do not share one implicitly.
        shared_workspace = defaults.workspace if configured and agent.id == main_id else None
        own, total = agent.bootstrap_max_chars, agent.bootstrap_total_max_chars
        return EffectiveAgent(
            id=agent.id,
            name=agent.name,
            is_configured=configured is not None,
            runtime=agent.runtime or defaults.runtime,
            sandbox_mode=self._sandbox_mode(configured),
            workspace=shared_workspace if agent.workspace is None else agent.workspace,
            folder=AgentFolder(agent.id, agent.agent_dir),
            main_folder=AgentFolder(main_id, main.agent_dir if main else None),
            thinking=agent.subagents.thinking,
            subagents=_effective_subagents(agent.subagents, defaults.subagents),
            defaults=defaults.subagents,
            bootstrap=BootstrapLimits(
                chars_max=defaults.bootstrap_max_chars if own is None else own,
                total_chars_max=defaults.bootstrap_total_max_chars if total is None else total,
            ),
            context_scripts=self._context_scripts(agent),
            tools=self.tools.subagents.tools,
            model=_name(agent.model) or _name(defaults.model),
            model_settings=ModelSettings(
                agent_subagents=_setting(agent.subagents.model),
                defaults_subagents=_setting(defaults.subagents.model),
                agent=_setting(agent.model),
                defaults=_setting(defaults.model),
            ),
            aliases=self.model_aliases(),
            known_models=self.known_models(),
            models=self.models,
        )

    def is_sandboxed(self, agent_id: str, session_key: str) -> bool:
        """Return True if the agent's sandbox mode applies to this session (canonical key)."""
        mode = self._sandbox_mode(self.agent(agent_id))
        if mode != "non-main":
            return mode == "all"
        return is_sandboxed(mode, session_key, self.canonical_key(MAIN, agent_id))

    def _sandbox_mode(self, agent: Agent | None) -> SandboxMode:
        """Return the agent's mode, else the defaults' mode, else `off`."""
        return (agent.sandbox.mode if agent else None) or self.agents.defaults.sandbox.mode or "off"

    def _context_scripts(self, agent: Agent) -> tuple[ContextScript, ...]:
        own = agent.subagents.context_scripts
        scripts = resolve_scripts(self.subagent_defaults.context_scripts.run, own.run, own.ignore)
        return tuple(self.timed(script) for script in scripts)

    def model_aliases(self) -> dict[str, str]:
        """Return lower-case aliases with their `provider/model`. If an alias occurs twice, the
        first wins.
        """
        aliases: dict[str, str] = {}
        for name, entry in self.agents.defaults.models.items():
            if entry.alias_word:
                aliases.setdefault(entry.alias_word, name)
        return aliases

    def known_models(self) -> tuple[str, ...]:
        """Return `provider/model` of every model in the file, from the providers and the named
        entries.
        """
        offered = (
            f"{provider}/{model.id}"
            for provider, entry in self.models.providers.items()
            for model in entry.models
        )
        return tuple(dict.fromkeys((*self.agents.defaults.models, *offered)))

    def threads_of(self, channel: str | None, account_id: str | None) -> ThreadPolicy:
        """Return the thread policy of a channel and account."""
        bindings = self.session.thread_bindings
        return thread_policy(bindings, self.extra, channel=channel, account_id=account_id)

    @property
    def defaults(self) -> AgentDefaults:
        """Return `agents.defaults`."""
        return self.agents.defaults

    def timed(self, script: ContextScript) -> ContextScript:
        """Return the script with the server's script timeout if it sets none itself."""
        if "timeout_seconds" in script.model_fields_set:
            return script
        return script.model_copy(update={"timeout_seconds": self.spawnlog.script_timeout_seconds})


def _name(choice: ModelChoice | None) -> str | None:
    return choice.name if choice else None


def _setting(choice: ModelChoice | None) -> ModelSetting:
    return {"primary": choice.primary, "fallbacks": choice.fallbacks} if choice else None


def _effective_subagents(own: AgentSubagents, defaults: SubagentDefaults) -> EffectiveSubagents:
    allowed, required = own.allow_agents, own.require_agent_id
    limit = own.context_preamble_max_chars
    return EffectiveSubagents(
        allow_agents=defaults.allow_agents if allowed is None else allowed,
        require_agent_id=defaults.require_agent_id if required is None else required,
        context_preamble_max_chars=(
            defaults.context_preamble_max_chars if limit is None else limit
        ),
        allow_agents_from=_configured_at(allowed is not None, defaults.allow_agents is not None),
        require_agent_id_from=_configured_at(
            required is not None, "require_agent_id" in defaults.model_fields_set
        ),
    )


def _configured_at(agent_says: bool, defaults_say: bool) -> ConfiguredAt | None:
    return "agent" if agent_says else "defaults" if defaults_say else None

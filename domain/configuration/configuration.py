"""The whole configuration, and the questions that are asked of it."""

from dataclasses import dataclass
from typing import Any

from pydantic import Field

from domain.configuration.agents import (
    Agent,
    AgentDefaults,
    Agents,
    SandboxMode,
    SubagentDefaults,
    is_sandboxed,
)
from domain.configuration.context_scripts import ContextScript, resolve_scripts
from domain.configuration.models import ModelChoice, Models
from domain.configuration.runtimes import CommandRuntime, Runtime
from domain.configuration.sections import SharedSection
from domain.configuration.session import SessionSection, ThreadPolicy, thread_policy
from domain.configuration.settings import Settings
from domain.configuration.tools import Tools
from domain.values.agent_id import DEFAULT_AGENT_ID, is_valid_agent_id, normalise_agent_id
from domain.values.session_key import MAIN, SessionKey, canonical_session_key
from domain.values.sources import ConfiguredAt


@dataclass(frozen=True)
class EffectiveSubagents:
    """What holds for the sub-agents of one agent, its own word before the defaults'.

    `allow_agents` is None where nobody says: then the agent itself only. The `*_from` say whose
    word it is, None where neither says anything.
    """

    allow_agents: tuple[str, ...] | None
    require_agent_id: bool
    context_preamble_max_chars: int
    allow_agents_from: ConfiguredAt | None = None
    require_agent_id_from: ConfiguredAt | None = None


class Configuration(SharedSection):
    """A configuration. Sections of other programs are kept in `extra`."""

    agents: Agents = Field(default_factory=Agents)
    tools: Tools = Field(default_factory=Tools)
    models: Models = Field(default_factory=Models)
    session: SessionSection = Field(default_factory=SessionSection)
    spawnlog: Settings = Field(default_factory=Settings)

    @classmethod
    def builtin(cls) -> "Configuration":
        """What holds without a file: one agent `main` that answers with the prompt it was given.

        Its runtime is the program `cat`, so that everything around a run is real and no model is
        needed.
        """
        runtime = CommandRuntime(type="command", command=("cat",), input="stdin-text")
        return cls(agents=Agents(list=(Agent(id=DEFAULT_AGENT_ID, runtime=runtime),)))

    @property
    def extra(self) -> dict[str, Any]:
        """The sections that spawnlog does not read, as they stand."""
        return dict(self.model_extra or {})

    @property
    def subagent_defaults(self) -> SubagentDefaults:
        """`agents.defaults.subagents`: the limits are the same for all agents."""
        return self.agents.defaults.subagents

    def agent(self, agent_id: str) -> Agent | None:
        """The agent of this id in any case, or None. Where none is listed there is `main`."""
        if not is_valid_agent_id(agent_id):
            return None
        wanted = normalise_agent_id(agent_id)
        for agent in self.agents.list:
            if agent.id == wanted:
                return agent
        return Agent(id=wanted) if not self.agents.list and wanted == DEFAULT_AGENT_ID else None

    def agent_ids(self) -> tuple[str, ...]:
        """The ids of all agents, in the order of the file."""
        return tuple(agent.id for agent in self.agents.list) or (DEFAULT_AGENT_ID,)

    @property
    def default_agent_id(self) -> str:
        """The first agent that is marked as default, else the first, else `main`."""
        marked = (agent.id for agent in self.agents.list if agent.default)
        return next(marked, self.agent_ids()[0])

    def canonical_key(self, spelling: str, default_agent_id: str | None = None) -> SessionKey:
        """The one form of a session's key; `main`, and a key that names no agent, are sessions of
        `default_agent_id`, by default the default agent. `InvalidSessionKey` for what is none."""
        return canonical_session_key(
            spelling,
            main_key=self.session.main_key,
            scope=self.session.scope,
            default_agent_id=self.default_agent_id
            if default_agent_id is None
            else default_agent_id,
        )

    def subagents_for(self, agent_id: str) -> EffectiveSubagents:
        """What the agent's own `subagents` section says, else the defaults (unknown ids too)."""
        defaults, agent = self.subagent_defaults, self.agent(agent_id)
        own = agent.subagents if agent else None
        allowed = own.allow_agents if own else None
        required = own.require_agent_id if own else None
        limit = own.context_preamble_max_chars if own else None
        return EffectiveSubagents(
            allow_agents=defaults.allow_agents if allowed is None else allowed,
            require_agent_id=defaults.require_agent_id if required is None else required,
            context_preamble_max_chars=(
                defaults.context_preamble_max_chars if limit is None else limit
            ),
            allow_agents_from=_configured_at(
                allowed is not None, defaults.allow_agents is not None
            ),
            require_agent_id_from=_configured_at(
                required is not None, "require_agent_id" in defaults.model_fields_set
            ),
        )

    def model_of(self, agent_id: str) -> str | None:
        """The agent's own `model`, else that of the defaults."""
        agent = self.agent(agent_id)
        return _name(agent.model if agent else None) or _name(self.agents.defaults.model)

    def runtime_for(self, agent_id: str) -> Runtime | None:
        """The agent's runtime, else that of the defaults; None where nobody says."""
        agent = self.agent(agent_id)
        return (agent.runtime if agent else None) or self.agents.defaults.runtime

    def is_sandboxed(self, agent_id: str, session_key: str) -> bool:
        """Whether the agent's sandbox mode puts this session (canonical key) into a sandbox."""
        own_main = self.canonical_key(MAIN, agent_id)
        return is_sandboxed(self.sandbox_mode_for(agent_id), session_key, own_main)

    def sandbox_mode_for(self, agent_id: str) -> SandboxMode:
        """The agent's sandbox mode, else that of the defaults, else `off`."""
        agent = self.agent(agent_id)
        return (agent.sandbox.mode if agent else None) or self.agents.defaults.sandbox.mode or "off"

    def workspace_for(self, agent_id: str) -> str | None:
        """The workspace that the file gives the agent; that of the defaults is the default
        agent's alone, for two agents do not share a folder unless the file says so."""
        agent = self.agent(agent_id)
        if agent is not None and agent.workspace is not None:
            return agent.workspace
        is_default = agent is not None and agent.id == self.default_agent_id
        return self.agents.defaults.workspace if is_default else None

    def context_scripts_for(self, requested_agent_id: str) -> tuple[ContextScript, ...]:
        """The scripts for a spawn of this id, in the order they run; an id that is not configured
        gets the defaults. Each has its timeout, `spawnlog.scriptTimeoutSeconds` where it is
        silent."""
        agent = self.agent(requested_agent_id)
        own = agent.subagents.context_scripts if agent else None
        scripts = resolve_scripts(
            self.subagent_defaults.context_scripts.run,
            own.run if own else (),
            own.ignore if own else (),
        )
        return tuple(self.timed(script) for script in scripts)

    def model_aliases(self) -> dict[str, str]:
        """Alias in lower case to `provider/model`; of two equal aliases the first counts."""
        aliases: dict[str, str] = {}
        for name, entry in self.agents.defaults.models.items():
            if entry.alias_word:
                aliases.setdefault(entry.alias_word, name)
        return aliases

    def known_models(self) -> tuple[str, ...]:
        """`provider/model` of every model that the file lists, under its provider or by name."""
        offered = (
            f"{provider}/{model.id}"
            for provider, entry in self.models.providers.items()
            for model in entry.models
        )
        return tuple(dict.fromkeys((*self.agents.defaults.models, *offered)))

    def threads_of(self, channel: str | None, account_id: str | None) -> ThreadPolicy:
        """What holds for binding sub-agents to threads of a channel and account."""
        bindings = self.session.thread_bindings
        return thread_policy(bindings, self.extra, channel=channel, account_id=account_id)

    @property
    def defaults(self) -> AgentDefaults:
        """`agents.defaults`."""
        return self.agents.defaults

    def timed(self, script: ContextScript) -> ContextScript:
        """A script that says no timeout has that of the server, which is no default of its own."""
        if "timeout_seconds" in script.model_fields_set:
            return script
        return script.model_copy(update={"timeout_seconds": self.spawnlog.script_timeout_seconds})


def _name(choice: ModelChoice | None) -> str | None:
    return choice.name if choice else None


def _configured_at(agent_says: bool, defaults_say: bool) -> ConfiguredAt | None:
    return "agent" if agent_says else "defaults" if defaults_say else None

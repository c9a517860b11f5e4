"""Change of configuration: the two configurations of a what-if, and their differences.

Each difference is computed once, for all decisions that are decided again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from domain.configuration.configuration import Configuration, EffectiveAgent
from domain.configuration.runtimes import values_of
from domain.spawn.admission import policy_of
from domain.values.json_text import compact_json
from domain.what_if.scripts import ScriptsChange, scripts_under

AGENTS_REMEMBERED_MAX = 1_000


@dataclass(frozen=True, eq=False)
class WholeConfiguration:
    """Configuration, and the complete document that context scripts receive as `cfg`."""

    configuration: Configuration
    document: Mapping[str, object]

    @cached_property
    def printed(self) -> str:
        """Return the document as JSON text.

        Comparing texts keeps apart 1 and true, and objects with members in another order.
        """
        return compact_json(dict(self.document))


@dataclass(frozen=True, eq=False)
class AgentChange:
    """Configuration of one agent, then and now."""

    then: EffectiveAgent
    now: EffectiveAgent
    scripts: ScriptsChange
    limits: Mapping[str, object]
    """Limits on its spawns now, as changes to `AdmissionFacts`."""

    @cached_property
    def are_credentials_elsewhere(self) -> bool:
        """Return True if its credentials are looked up in another folder or for another runtime."""
        return _found_by(self.then) != _found_by(self.now)

    @property
    def is_workspace_same(self) -> bool:
        """Return True if it has the same workspace."""
        return self.then.workspace == self.now.workspace

    @property
    def preamble_limits(self) -> tuple[int, int]:
        """Return the preamble limits in characters, then and now."""
        then, now = self.then.subagents, self.now.subagents
        return then.context_preamble_max_chars, now.context_preamble_max_chars

    @cached_property
    def is_bootstrap_cut_alike(self) -> bool:
        """Return True if the limits for bootstrap files are the same."""
        return self.then.bootstrap == self.now.bootstrap


def _found_by(agent: EffectiveAgent) -> tuple[object, ...]:
    """Return the settings that determine where an agent's credentials are found."""
    runtime = agent.runtime
    kind = runtime.type if runtime is not None else None
    return agent.is_configured, kind, values_of(runtime), agent.folder, agent.main_folder


@dataclass(frozen=True, eq=False)
class Change:
    """Recorded configuration, and the hypothetical one that replaces it."""

    then: WholeConfiguration
    now: WholeConfiguration
    _agents: dict[str, AgentChange] = field(default_factory=dict, init=False, repr=False)

    @property
    def both(self) -> tuple[Configuration, Configuration]:
        """Return both configurations, the recorded one first."""
        return self.then.configuration, self.now.configuration

    def agent(self, agent_id: str) -> AgentChange:
        """Return the change for an agent, which may be listed in both, one or neither of them."""
        known = self._agents.get(agent_id)
        if known is None:
            known = self._agent(agent_id)
            if len(self._agents) < AGENTS_REMEMBERED_MAX:
                self._agents[agent_id] = known
        return known

    def _agent(self, agent_id: str) -> AgentChange:
        then, now = self.both
        policy = policy_of(now, agent_id)
        return AgentChange(
            then.effective_agent(agent_id),
            now.effective_agent(agent_id),
            ScriptsChange(
                scripts_under(then, self.then.printed, agent_id),
                scripts_under(now, self.now.printed, agent_id),
            ),
            {
                "max_spawn_depth": policy.max_spawn_depth,
                "max_children": policy.max_children,
                "require_agent_id": policy.require_agent_id,
                "allow_agents": policy.allow_agents,
            },
        )

    @cached_property
    def has_same_session_keys(self) -> bool:
        """Return True if every session key still resolves to the same session."""
        then, now = self.both
        return (
            then.session.main_key == now.session.main_key
            and then.session.scope == now.session.scope
            and then.default_agent_id == now.default_agent_id
        )

    @cached_property
    def aliases(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the model aliases, then and now."""
        then, now = self.both
        return then.model_aliases(), now.model_aliases()

    @cached_property
    def is_alias_changed(self) -> bool:
        """Return True if a model alias was added, removed or changed."""
        return self.aliases[0] != self.aliases[1]

    @cached_property
    def has_same_receivers(self) -> bool:
        """Return True if announcements go to the same receivers."""
        then, now = (configuration.spawnlog for configuration in self.both)
        return then.announce == now.announce

    @cached_property
    def has_same_prepare_hook(self) -> bool:
        """Return True if the hook that prepares spawns is the same, or is not configured now."""
        then, now = (configuration.spawnlog.hooks for configuration in self.both)
        return now.prepare_subagent_spawn in (None, then.prepare_subagent_spawn)

    @cached_property
    def are_roots_same(self) -> bool:
        """Return True if the workspace roots are the same."""
        then, now = (configuration.spawnlog for configuration in self.both)
        return then.workspace_roots == now.workspace_roots

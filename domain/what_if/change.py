"""A configuration and the one that takes its place, and what differs between the two.

Each difference is looked for once, however many decisions are decided again.
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
    """A configuration, and the whole of it as scripts are told it."""

    configuration: Configuration
    told: Mapping[str, object]

    @cached_property
    def printed(self) -> str:
        """Return what scripts are told, as it is printed: 1 is not true there, and an object has
        its members in an order."""
        return compact_json(dict(self.told))


@dataclass(frozen=True, eq=False)
class AgentChange:
    """What is configured for one agent, then and now."""

    then: EffectiveAgent
    now: EffectiveAgent
    scripts: ScriptsChange
    limits: Mapping[str, object]
    """What its spawns are admitted by now, as changes of `AdmissionFacts`."""

    @cached_property
    def are_credentials_elsewhere(self) -> bool:
        """Whether they are looked for in another folder, or for another runtime."""
        return _found_by(self.then) != _found_by(self.now)

    @property
    def is_workspace_same(self) -> bool:
        """Whether it has the folder that it had."""
        return self.then.workspace == self.now.workspace

    @property
    def preamble_limits(self) -> tuple[int, int]:
        """How many characters of a preamble are kept, then and now."""
        then, now = self.then.subagents, self.now.subagents
        return then.context_preamble_max_chars, now.context_preamble_max_chars

    @cached_property
    def is_bootstrap_cut_alike(self) -> bool:
        """Whether files are cut at the limits of then."""
        return self.then.bootstrap == self.now.bootstrap


def _found_by(agent: EffectiveAgent) -> tuple[object, ...]:
    """Return by what the credentials of an agent are found."""
    runtime = agent.runtime
    kind = runtime.type if runtime is not None else None
    return agent.is_configured, kind, values_of(runtime), agent.folder, agent.main_folder


@dataclass(frozen=True, eq=False)
class Change:
    """A configuration, and the one that takes its place."""

    then: WholeConfiguration
    now: WholeConfiguration
    _agents: dict[str, AgentChange] = field(default_factory=dict, init=False, repr=False)

    @property
    def both(self) -> tuple[Configuration, Configuration]:
        """The configurations of then and of now."""
        return self.then.configuration, self.now.configuration

    def agent(self, agent_id: str) -> AgentChange:
        """Return what is configured for an agent, which may be listed in one of them or in none."""
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
    def is_session_named_alike(self) -> bool:
        """Whether every key of a session stands for the session that it stood for."""
        then, now = self.both
        return (
            then.session.main_key == now.session.main_key
            and then.session.scope == now.session.scope
            and then.default_agent_id == now.default_agent_id
        )

    @cached_property
    def aliases(self) -> tuple[dict[str, str], dict[str, str]]:
        """The aliases of models, then and now."""
        then, now = self.both
        return then.model_aliases(), now.model_aliases()

    @cached_property
    def is_alias_changed(self) -> bool:
        """Whether an alias stands for another model, is new, or is gone."""
        return self.aliases[0] != self.aliases[1]

    @cached_property
    def is_announced_alike(self) -> bool:
        """Whether results are sent to whom they were sent."""
        then, now = (one.spawnlog for one in self.both)
        return then.announce == now.announce

    @cached_property
    def is_prepared_alike(self) -> bool:
        """Whether the hook that prepares spawns is the one of then, or there is none."""
        then, now = (one.spawnlog.hooks for one in self.both)
        return now.prepare_subagent_spawn in (None, then.prepare_subagent_spawn)

    @cached_property
    def are_roots_same(self) -> bool:
        """Whether requested folders may lie where they might."""
        then, now = (one.spawnlog for one in self.both)
        return then.workspace_roots == now.workspace_roots

"""Effective configuration of an agent, with the source of each value."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from domain.configuration.agents import ANY_AGENT, Agent, allowed_agents
from domain.configuration.configuration import Configuration, EffectiveAgent
from domain.configuration.context_scripts import ContextScript
from domain.configuration.places import BUILT_IN, DEFAULTS, NAMED_SOURCES, SectionSource, source_of
from domain.configuration.problems import dotted_path, pointer_of
from domain.configuration.settings import Token
from domain.plan.agent import agent_tool_policy, plan_agent_model, plan_agent_thinking
from domain.plan.model import ModelPlan
from domain.plan.timeout import run_timeout_seconds
from domain.values.role import Role

_LIMITS = (
    "max_spawn_depth",
    "max_children_per_agent",
    "max_concurrent",
    "archive_after_minutes",
)
_ROLES: tuple[Role, ...] = ("leaf", "orchestrator")


@dataclass(frozen=True, slots=True)
class EffectiveValue:
    """One effective value.

    `source` is the path of the setting (`agents.list[2].subagents.model`), or `built-in`.
    """

    key: str
    value: JsonValue
    source: str


def effective_agent_values(
    configuration: Configuration, agent_id: str
) -> tuple[EffectiveValue, ...] | None:
    """Return the values for a spawn of this agent that sets nothing itself.

    They include the agents that it may spawn in turn, and never secrets. None if the agent does not
    exist.
    """
    agent = configuration.agent(agent_id)
    if agent is None:
        return None
    return _AgentValues(configuration, agent, configuration.effective_agent(agent_id)).values()


class _AgentValues:
    """Values of an effective agent, with sources determined from the sections."""

    def __init__(
        self, configuration: Configuration, agent: Agent, effective: EffectiveAgent
    ) -> None:
        self._configuration = configuration
        self._agent = agent
        self._effective = effective
        paths = {placed.id: path for path, placed in reversed(configuration.agents.placed)}
        # If the roster is empty, the only agent has no section in the file.
        self._name = dotted_path(pointer_of(paths[agent.id])) if agent.id in paths else ""
        defaults = configuration.subagent_defaults
        self._places = (
            SectionSource(agent, self._name),
            SectionSource(configuration.defaults, DEFAULTS),
        )
        self._subagents = (
            SectionSource(agent.subagents, f"{self._name}.subagents"),
            SectionSource(defaults, f"{DEFAULTS}.subagents"),
        )

    def values(self) -> tuple[EffectiveValue, ...]:
        plan = plan_agent_model(self._effective)
        return (
            *self._identity(),
            *self._surroundings(),
            self._chosen_model(plan),
            self._model_places(plan),
            self._prices(plan),
            self._thinking(),
            *self._admission(),
            *self._limits(),
            *self._context(),
            *self._tools(),
        )

    def _identity(self) -> list[EffectiveValue]:
        agent, name = self._agent, self._name
        is_default = agent.id == self._configuration.default_agent_id
        marked = f"{name}.default" if agent.default else BUILT_IN
        return [
            EffectiveValue("id", agent.id, self._id_source()),
            EffectiveValue("name", agent.name, f"{name}.name" if agent.name else BUILT_IN),
            EffectiveValue("default", is_default, marked),
        ]

    def _id_source(self) -> str:
        """Return the source of the id. In `entries`, the id is the key itself."""
        if self._configuration.agents.entries is not None:
            return self._name
        return f"{self._name}.id" if self._name else BUILT_IN

    def _surroundings(self) -> list[EffectiveValue]:
        agent, effective = self._agent, self._effective
        runtime = effective.runtime
        at = source_of("runtime", *self._places)
        rows = [EffectiveValue("runtime.type", runtime.type if runtime else None, at)]
        for field, key in (("models", "models"), ("provides_sandbox", "providesSandbox")):
            if runtime is not None and field in type(runtime).model_fields:
                value = getattr(runtime, field)
                is_set = field in runtime.model_fields_set and value is not None
                source = f"{at}.{key}" if is_set else BUILT_IN
                rows.append(EffectiveValue(f"runtime.{key}", _plain(value), source))
        folder = effective.workspace
        source = source_of("workspace", *self._places) if folder else BUILT_IN
        own_folder = f"workspaces/{agent.id} in the data directory"
        rows.append(EffectiveValue("workspace", folder or own_folder, source))
        sandboxes = [
            SectionSource(agent.sandbox, f"{self._name}.sandbox"),
            SectionSource(self._configuration.defaults.sandbox, f"{DEFAULTS}.sandbox"),
        ]
        mode = effective.sandbox_mode
        rows.append(EffectiveValue("sandbox.mode", mode, source_of("mode", *sandboxes)))
        return rows

    def _chosen_model(self, plan: ModelPlan) -> EffectiveValue:
        if plan.model is None:
            return EffectiveValue("model", "the runtime's own choice", BUILT_IN)
        return EffectiveValue("model", plan.reference, self._source(plan.source, "model"))

    def _model_places(self, plan: ModelPlan) -> EffectiveValue:
        """Return every configured model in order of precedence, with its verdict."""
        named: list[JsonValue] = [
            {
                "place": self._source(verdict.source, "model"),
                "model": verdict.reference,
                "verdict": verdict.verdict,
            }
            for verdict in plan.verdicts
        ]
        places = dict.fromkeys(self._source(verdict.source, "model") for verdict in plan.verdicts)
        return EffectiveValue("models", named, ", ".join(places) or BUILT_IN)

    def _source(self, source: str, field: str) -> str:
        return f"{NAMED_SOURCES[source].section.format(agent=self._name)}.{field}"

    def _prices(self, plan: ModelPlan) -> EffectiveValue:
        cost = self._effective.models.cost_of(plan.provider or "", plan.model or "")
        if cost is None:
            return EffectiveValue("prices", None, BUILT_IN)
        prices = cost.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return EffectiveValue("prices", prices, f"models.providers.{plan.provider}.models")

    def _thinking(self) -> EffectiveValue:
        effective = self._effective
        plan = plan_agent_thinking(effective)
        if plan.source is None:
            return EffectiveValue("thinking", None, BUILT_IN)
        own, default = effective.thinking, effective.defaults.thinking
        raw = own if plan.source == "agent_subagents" else default
        source = self._source(plan.source, "thinking")
        return EffectiveValue("thinking", plan.level or raw, source)

    def _subagents_value(self, key: str, value: JsonValue, field: str) -> EffectiveValue:
        return EffectiveValue(key, value, source_of(field, *self._subagents))

    def _admission(self) -> list[EffectiveValue]:
        effective = self._effective.subagents
        allowed = allowed_agents(self._agent.id, effective.allow_agents)
        may_name: list[JsonValue] = [ANY_AGENT] if allowed is None else list(allowed)
        required = effective.require_agent_id
        return [
            self._subagents_value("allowAgents", _plain(effective.allow_agents), "allow_agents"),
            self._subagents_value("mayName", may_name, "allow_agents"),
            self._subagents_value("requireAgentId", required, "require_agent_id"),
        ]

    def _limits(self) -> list[EffectiveValue]:
        """Return the limits, which only the defaults can set."""
        defaults, place = self._effective.defaults, self._subagents[1]
        values = {field: getattr(defaults, field) for field in _LIMITS}
        field = "run_timeout_seconds"
        values[field] = run_timeout_seconds(None, defaults.run_timeout_seconds)
        return [
            EffectiveValue(place.key_of(field), value, source_of(field, place))
            for field, value in values.items()
        ]

    def _context(self) -> list[EffectiveValue]:
        scripts: list[JsonValue] = [script.id for script in self._effective.context_scripts]
        field = "context_scripts"
        sources = [place.at(field) for place in reversed(self._subagents) if place.says(field)]
        limit, files = "context_preamble_max_chars", self._effective.bootstrap
        per_file, total = "bootstrap_max_chars", "bootstrap_total_max_chars"
        characters = self._effective.subagents.context_preamble_max_chars
        places = self._places
        return [
            EffectiveValue("contextScripts", scripts, ", ".join(sources) or BUILT_IN),
            self._subagents_value("contextPreambleMaxChars", characters, limit),
            EffectiveValue("bootstrapMaxChars", files.chars_max, source_of(per_file, *places)),
            EffectiveValue(
                "bootstrapTotalMaxChars", files.total_chars_max, source_of(total, *places)
            ),
        ]

    def _tools(self) -> list[EffectiveValue]:
        tools = self._effective.tools
        rows = []
        for role in _ROLES:
            policy = agent_tool_policy(self._effective, role)
            value = {"allow": _plain(policy.allow), "deny": _plain(policy.deny)}
            source = "tools.subagents.tools" if tools.model_fields_set else BUILT_IN
            rows.append(EffectiveValue(f"tools.{role}", value, source))
        return rows


def _plain(value: object) -> JsonValue:
    if isinstance(value, tuple):
        return [str(name) for name in value]
    assert value is None or isinstance(value, bool | str)
    return value


# The whole configuration with defaults filled in.


def effective_values(configuration: Configuration, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sections as a file would write them, with every default filled in.

    null remains where the value depends on something else: an agent's defaults, or the tool list of
    a child's role. The result contains no secrets.

    Args:
        configuration: Configuration read back from `stored`, in which secrets are references.
        stored: The stored revision.
    """
    values: dict[str, Any] = configuration.model_dump(mode="json", by_alias=True)
    defaults = values["agents"]["defaults"]
    defaults["sandbox"]["mode"] = defaults["sandbox"]["mode"] or "off"
    agents = [
        _agent(configuration, agent)
        for agent in configuration.agents.roster or (Agent(id=configuration.default_agent_id),)
    ]
    if configuration.agents.entries is None:
        values["agents"]["list"] = agents
        del values["agents"]["entries"]
    else:
        values["agents"]["entries"] = {agent.pop("id"): agent for agent in agents}
        del values["agents"]["list"]
    defaults["subagents"]["contextScripts"]["run"] = _scripts(
        configuration, configuration.subagent_defaults.context_scripts.run
    )
    settings = values["spawnlog"]
    settings["tokens"] = [_token(token) for token in configuration.spawnlog.tokens]
    # A revision that was read back has no database URL; only `stored` has it, or a reference to it.
    settings["databaseUrl"] = stored.get("spawnlog", {}).get("databaseUrl")
    return values


def _agent(configuration: Configuration, agent: Agent) -> dict[str, Any]:
    values = agent.model_dump(mode="json", by_alias=True)
    own = agent.subagents.context_scripts.run
    values["subagents"]["contextScripts"]["run"] = _scripts(configuration, own)
    return values


def _scripts(
    configuration: Configuration, scripts: Iterable[ContextScript]
) -> list[dict[str, Any]]:
    return [
        configuration.timed(script).model_dump(mode="json", by_alias=True) for script in scripts
    ]


def _token(token: Token) -> dict[str, Any]:
    """Return a token with its source as a file would write it."""
    values = token.model_dump(mode="json", by_alias=True)
    source = token.token
    if source.variable is not None:
        values["token"] = "${" + source.variable + "}"
    elif source.file is not None:
        values["token"] = {"file": source.file}
    else:
        values["token"] = values["token"]["secret"]
    return values

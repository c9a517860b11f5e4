"""Model of the configuration for spawns, and the same as a file.

Nothing of `domain` is used: if a rule changes there, it must be changed here as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.models import plan_words
from tests.support.models import spawn_words as words

Named = str | tuple[str, ...] | None


"""Name of a model, a primary model with its fallbacks, or nothing."""


@dataclass(frozen=True)
class Word:
    """Settings of one section for an agent and its spawns; None for an unset one.

    Attributes:
        children_model: The `model` of its `subagents`.
        runtime: One of `plan_words.RUNTIMES`.
        workspace: A path relative to the folder of the file.
    """

    allow: tuple[str, ...] | None = None
    require: bool | None = None
    thinking: str | None = None
    children_model: Named = None
    model: Named = None
    sandbox: str | None = None
    runtime: str | None = None
    workspace: str | None = None


@dataclass(frozen=True)
class Rules:
    """One revision of the configuration: the defaults and the agents.

    Attributes:
        marked: The agent that is marked as the default one.
        aliases: Model names by alias.
        prices: True if `plan_words.PRICED` has a price.
        tools: One of `plan_words.TOOLS`.
    """

    depth: int
    children: int
    defaults: Word
    agents: Mapping[str, Word]
    seconds: int = 0
    minutes: int = 60
    marked: str | None = None
    aliases: tuple[tuple[str, str], ...] = ()
    roots: tuple[str, ...] = ()
    main_key: str = "main"
    tools: str = "silent"
    prices: bool = False

    def configuration(self) -> dict[str, Any]:
        defaults = _section(self.defaults)
        defaults["subagents"] |= {
            "maxSpawnDepth": self.depth,
            "maxChildrenPerAgent": self.children,
            "runTimeoutSeconds": self.seconds,
            "archiveAfterMinutes": self.minutes,
        }
        defaults["models"] = {name: {"alias": alias} for alias, name in self.aliases}
        listed = [
            {"id": name, "default": name == self.marked, **_section(word)}
            for name, word in self.agents.items()
        ]
        return {
            "agents": {"defaults": defaults, "list": listed},
            "tools": {"subagents": {"tools": plan_words.TOOLS[self.tools].section}},
            "models": {"providers": plan_words.PROVIDERS if self.prices else {}},
            "session": {"mainKey": self.main_key},
            "spawnlog": {"workspaceRoots": list(self.roots)},
        }

    def own(self, agent: str) -> Word:
        return self.agents.get(agent, Word())

    def allow(self, agent: str) -> tuple[str, ...] | None:
        """Return the allow list of an agent; its own overrides that of the defaults."""
        own = self.own(agent).allow
        return self.defaults.allow if own is None else own

    def require(self, agent: str) -> bool:
        """Return True if the agent must name the agent that it spawns."""
        own = self.own(agent).require
        return bool(self.defaults.require if own is None else own)

    def allowed(self, agent: str) -> tuple[str, ...] | None:
        """Return the agents that this agent may name, in order; None for any."""
        listed = self.allow(agent)
        return (agent,) if listed is None else words.ALLOW_LISTS[listed]

    def mode(self, agent: str) -> str:
        return self.own(agent).sandbox or self.defaults.sandbox or "off"

    def boxes(self, agent: str, key: str) -> bool:
        """Return True if a session of an agent is in a sandbox."""
        if self.mode(agent) == "non-main":
            return key != f"agent:{agent}:{self.main_key}"
        return self.mode(agent) == "all"

    def runtime(self, agent: str) -> Mapping[str, Any] | None:
        """Return the runtime of an agent, or None if none is configured."""
        name = self.own(agent).runtime or self.defaults.runtime
        return plan_words.RUNTIMES[name] if name else None

    def workspace(self, agent: str) -> str:
        """Return an agent's own folder. The default workspace belongs to the default agent
        alone.
        """
        default = self.marked if self.marked in self.agents else next(iter(self.agents))
        shared = self.defaults.workspace if agent == default else None
        return self.own(agent).workspace or shared or f"{plan_words.WORKSPACES}/{agent}"


def _section(word: Word) -> dict[str, Any]:
    subagents: dict[str, Any] = {"requireAgentId": word.require, "thinking": word.thinking}
    subagents["allowAgents"] = None if word.allow is None else list(word.allow)
    subagents["model"] = _choice(word.children_model)
    section: dict[str, Any] = {"model": _choice(word.model), "workspace": word.workspace}
    section["sandbox"] = {"mode": word.sandbox} if word.sandbox else None
    section["runtime"] = plan_words.RUNTIMES[word.runtime] if word.runtime else None
    return {**_said(section), "subagents": _said(subagents)}


def _choice(named: Named) -> Any:
    if isinstance(named, tuple):
        return {"primary": named[0], "fallbacks": list(named[1:])}
    return named


def _said(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}

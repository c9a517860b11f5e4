"""What should come of spawns, in the plainest form.

Nothing of `domain` is asked: who changes a rule there has to change it here as well. What a run
counts for, and how far it has come, is the tree's of `tests.support.family_model`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support import spawn_words as words
from tests.support.family_model import ENDED, Life, Tree

LANE_WIDTH = 3


@dataclass(frozen=True)
class Word:
    """What one agent's section says of its spawns; None where it says nothing."""

    allow: tuple[str, ...] | None = None
    require: bool | None = None
    thinking: str | None = None


@dataclass(frozen=True)
class Rules:
    """One revision of the configuration: the defaults, and the agents that there are."""

    depth: int
    children: int
    defaults: Word
    agents: Mapping[str, Word]

    def configuration(self) -> dict[str, Any]:
        """The same as a file would say it."""
        limits = {"maxSpawnDepth": self.depth, "maxChildrenPerAgent": self.children}
        return {
            "agents": {
                "defaults": {"subagents": {**limits, **_section(self.defaults)}},
                "list": [
                    {"id": name, "subagents": _section(word)} for name, word in self.agents.items()
                ],
            }
        }

    def says(self, agent: str) -> Word:
        """What holds for an agent: its own word before that of the defaults."""
        own, others = self.agents.get(agent, Word()), self.defaults
        return Word(
            others.allow if own.allow is None else own.allow,
            others.require if own.require is None else own.require,
            own.thinking or others.thinking,
        )

    def allowed(self, agent: str) -> tuple[str, ...] | None:
        """Whom this agent may name, in order; None for everybody."""
        listed = self.says(agent).allow
        return (agent,) if listed is None else words.ALLOW_LISTS[listed]


def _section(word: Word) -> dict[str, Any]:
    values: dict[str, Any] = {"requireAgentId": word.require, "thinking": word.thinking}
    values["allowAgents"] = None if word.allow is None else list(word.allow)
    return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class Asked:
    """A request; None where nothing is given."""

    agent_id: str | None = None
    mode: str | None = None
    thread: bool = False
    thinking: str | None = None

    @property
    def effective_mode(self) -> str:
        """What is done when no mode is given."""
        return self.mode or ("session" if self.thread else "run")


@dataclass(frozen=True)
class Told:
    """A refusal; the numbers are those that were compared, where there are any."""

    rule: str
    status: str
    text: str
    current: int | None = None
    limit: int | None = None


@dataclass(frozen=True)
class Seen:
    """A session as it stays on record."""

    key: str
    agent: str
    depth: int
    role: str
    scope: str
    root: str
    parent: str | None


def may(depth: int, depth_max: int) -> tuple[str, str]:
    """Role and control scope of a session that is so deep."""
    if depth == 0:
        return "main", "children"
    return ("orchestrator", "children") if depth < depth_max else ("leaf", "none")


@dataclass
class SpawnModel:
    """Sessions and runs by names: a root session has its key for a name, a child that of its run.

    `revisions[n - 1]` are the rules of revision n. `asked` is what was asked for a run and under
    which revision, `given` the agent that was asked for, `levels` how its child is to think.
    """

    revisions: list[Rules]
    tree: Tree = field(default_factory=lambda: Tree(0, 0, LANE_WIDTH))
    seen: dict[str, Seen] = field(default_factory=dict)
    asked: dict[str, tuple[Asked, int]] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    refused: dict[str, Told] = field(default_factory=dict)
    levels: dict[str, str | None] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)

    def requesters(self) -> list[str]:
        """Who may be asked to spawn: root sessions, and the children that there are."""
        return [*words.ROOTS, *(name for name in self.seen if name not in words.ROOTS)]

    def closed(self, name: str) -> str | None:
        """Why a session may ask for nothing any more; None when it may."""
        if self.tree.spawns(name):
            return None
        key, life = self.seen[name].key, self.tree.lives[name]
        return words.has_ended(key) if life.stage in ENDED else words.is_stopping(key)

    def spawn(self, name: str, by: str, asked: Asked) -> Told | None:
        """A session asks for a child; the refusal, if it is one."""
        rules = self.revisions[-1]
        if by not in self.seen:
            agent, depth = words.ROOTS[by]
            self.seen[by] = Seen(by, agent, depth, *may(depth, rules.depth), by, None)
        told = self._judged(by, asked, rules)
        target = words.AGENT_IDS.get(asked.agent_id or "", self.seen[by].agent)
        stage = "refused" if told else "requested"
        depth = self.seen[by].depth + 1
        self.tree.lives[name] = Life(name, by, depth, stage, target, is_admitted=told is None)
        self.asked[name], self.given[name] = (asked, len(self.revisions)), target
        if told is not None:
            self.refused[name] = told
        return told

    def _judged(self, by: str, asked: Asked, rules: Rules) -> Told | None:
        """The first rule that speaks against it."""
        depth, children = self.seen[by].depth, len(self.tree.counted(by))
        if asked.agent_id in words.NO_AGENT_IDS:
            text = words.invalid_agent_id(words.NO_AGENT_IDS[asked.agent_id])
            return Told("agent_id", "error", text)
        if asked.mode == "session" and not asked.thread:
            return Told("mode", "error", words.NEEDS_THREAD)
        if depth >= rules.depth:
            text = words.too_deep(depth, rules.depth)
            return Told("depth", "forbidden", text, depth, rules.depth)
        if children >= rules.children:
            text = words.too_many(children, rules.children)
            return Told("active_children", "forbidden", text, children, rules.children)
        agent = self.seen[by].agent
        if asked.agent_id is None:
            if not rules.says(agent).require:
                return None
            return Told("require_agent_id", "forbidden", words.NEEDS_ID)
        allowed = rules.allowed(agent)
        if allowed is None or words.AGENT_IDS[asked.agent_id] in allowed:
            return None
        return Told("allow_agents", "forbidden", words.not_allowed(allowed))

    def unfit(self, name: str) -> Told | None:
        """Why a spawn cannot be prepared under the rules that it was asked under; None when it
        can."""
        life, (asked, revision) = self.tree.lives[name], self.asked[name]
        rules = self.revisions[revision - 1]
        if life.agent_id not in rules.agents:
            text = words.not_configured(life.agent_id, self.given[name])
            return Told("agent_unknown", "error", text)
        word = asked.thinking or rules.says(life.agent_id).thinking
        if word in words.NO_THINKING:
            return Told("thinking", "error", words.no_level(word))
        self.levels[name] = words.THINKING[word] if word else None
        return None

    def create(self, name: str, key: str) -> None:
        """The child is there, under this key."""
        life, (_, revision) = self.tree.lives[name], self.asked[name]
        self.tree.ask(life, "prepare")
        self.tree.ask(life, "create")
        role, scope = may(life.depth, self.revisions[revision - 1].depth)
        above = self.seen[life.by]
        self.seen[name] = Seen(key, life.agent_id, life.depth, role, scope, above.root, above.key)

    def refuse(self, name: str, told: Told) -> None:
        """The preparation fails."""
        self.tree.ask(self.tree.lives[name], "refuse")
        self.refused[name] = told

    def note(self, name: str) -> str | None:
        """What a requester is told beside the acceptance."""
        if self.asked[name][0].effective_mode == "session":
            return words.SESSION_NOTE
        return None if ":cron:" in self.tree.lives[name].by else words.RUN_NOTE

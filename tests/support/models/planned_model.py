"""Model of the plan of an admitted spawn: the plan or the refusing rule, and the facts read on the
way.

Nothing of `domain` is used: if a rule changes there, it must be changed here as well.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.builders.configured_spawns import Rules
from tests.support.models import plan_words
from tests.support.models import spawn_words as words
from tests.support.models.planned_models import Choice, chosen
from tests.support.models.planned_places import Folder, Places
from tests.support.models.spawn_model import Asked, Seen, SpawnModel, Told, may
from world.model import messages

LOOKED_AT = (
    "agent_configured",
    "sandbox",
    "models",
    "served_models",
    "thinking",
    "run_timeout",
    "runtime",
    "credentials",
    "workspace",
)


@dataclass(frozen=True)
class Will:
    """Plan of a child, value by value as recorded, and the warnings for its caller."""

    plan: Mapping[str, Any]
    warnings: tuple[str, ...]


@dataclass
class PlannedModel(SpawnModel):
    """`home` is the folder that all others are in, `wills` are the plans of children."""

    home: str = ""
    places: Places = field(default_factory=Places)
    wills: dict[str, Will] = field(default_factory=dict)

    def judged(self, name: str) -> tuple[Told | Will, dict[str, Any]]:
        """Return the plan of a child under the rules of its request, or the first refusing rule;
        and the facts read until then.
        """
        return _Judging(self, name).judged()

    def message(self, name: str, session: str) -> str:
        """Send a message; its run has the plan of the previous one."""
        last = self.tree.last(session)
        message = super().message(name, session)
        if message == messages.GOES_ON and last is not None:
            self.wills[name] = self.wills[last.name]
        return message

    def create(self, name: str, key: str, will: Will) -> None:
        """Create the child under this key."""
        life, (_, revision) = self.tree.lives[name], self.asked[name]
        self.tree.ask(life, "prepare")
        self.tree.ask(life, "create")
        role, scope = may(life.depth, self.revisions[revision - 1].depth)
        above, plan = self.seen[life.by], will.plan
        is_boxed, folder = plan["sandboxed"], plan["workspace_dir"]
        seen = (life.agent_id, life.depth, role, scope, above.root, above.key, is_boxed, folder)
        has_spawn, has_yield = (
            has_tool(plan, text) for text in ("sessions_spawn", "sessions_yield")
        )
        self.seen[name] = Seen(key, *seen, has_spawn=has_spawn, has_yield=has_yield)
        self.wills[name] = will


def has_tool(plan: Mapping[str, Any], tool: str) -> bool:
    """Return True if the lists of a plan, which contain only names, permit a tool."""
    allow = plan["tools_allow"]
    return tool not in plan["tools_deny"] and (allow is None or tool in allow)


class _Judging:
    """Decision of one spawn. Only a child of the requester's agent inherits from the requester."""

    def __init__(self, model: PlannedModel, name: str) -> None:
        life = model.tree.lives[name]
        self.model = model
        self.name = name
        self.asked, revision = model.asked[name]
        self.rules: Rules = model.revisions[revision - 1]
        self.agent = life.agent_id
        self.given = model.given[name]
        self.depth = life.depth
        self.is_same = model.seen[life.by].agent == life.agent_id
        self.above = model.wills.get(life.by)
        self.looked_at: dict[str, Any] = dict.fromkeys(LOOKED_AT)

    def judged(self) -> tuple[Told | Will, dict[str, Any]]:
        """Decide in order: agent, sandbox, model, thinking, runtime, folder."""
        self.looked_at["agent_configured"] = self.agent in self.rules.agents
        if self.agent not in self.rules.agents:
            text = words.not_configured(self.agent, self.given)
            return Told("agent_unknown", "error", text), self.looked_at
        result = self._sandbox()
        if result is not None:
            return result, self.looked_at
        model = self._model()
        level = self._thinking()
        if isinstance(level, Told):
            return level, self.looked_at
        kind = (self._runtime() or {}).get("type")
        configured = self.rules.seconds
        self.looked_at["run_timeout"] = {"argument": self.asked.seconds, "configured": configured}
        self.looked_at["runtime"] = kind
        if kind not in plan_words.SERVED:
            text = plan_words.not_served(self.agent, kind)
            return Told("runtime", "error", text), self.looked_at
        # No agent of the model has any.
        self.looked_at["credentials"] = {"profile_ids": (), "missing": ()}
        result = self._folder()
        return result or self._will(model, level), self.looked_at

    def _runtime(self) -> Mapping[str, Any] | None:
        return self.rules.runtime(self.agent)

    def _sandbox(self) -> Told | None:
        mode, request = self.rules.mode(self.agent), self.asked
        provides = (self._runtime() or {}).get("providesSandbox", False)
        is_boxed = self.model.boxed[self.name]
        self.looked_at["sandbox"] = {
            "mode": mode,
            "child_sandboxed": mode in ("non-main", "all"),
            "runtime_provides": provides,
            "requester_sandboxed": is_boxed,
            "required": request.sandbox == "require",
        }
        if mode != "off":
            text = plan_words.no_sandbox(self.agent, mode)
            return None if provides else Told("sandbox", "error", text)
        if is_boxed:
            return Told("sandbox", "forbidden", plan_words.WOULD_ESCAPE)
        if request.sandbox == "require":
            return Told("sandbox", "forbidden", plan_words.NOT_SANDBOXED)
        return None

    def _model(self) -> Choice:
        request, own, defaults = self.asked, self.rules.own(self.agent), self.rules.defaults
        caller = request.active_model
        if caller is None and self.above is not None:
            provider, model = self.above.plan["model_provider"], self.above.plan["model"]
            caller = f"{provider}/{model}" if provider else model
        served = (self._runtime() or {}).get("models")
        choice = chosen(
            request.model,
            {
                "agent_subagents": own.children_model,
                "defaults_subagents": defaults.children_model,
                "caller": caller if self.is_same else None,
                "agent": own.model,
                "defaults": defaults.model,
            },
            {alias.strip().lower(): name for alias, name in reversed(self.rules.aliases)},
            served,
            [
                *(name for _, name in self.rules.aliases),
                *([plan_words.PRICED] if self.rules.prices else []),
            ],
        )
        self.looked_at["models"] = choice.verdicts
        self.looked_at["served_models"] = None if served is None else tuple(served)
        return choice

    def _thinking(self) -> tuple[str | None, str | None] | Told:
        """Return the thinking level and its source.

        The requester's level was not requested: it is used if valid, and refuses nothing.
        """
        caller = self.asked.active_thinking
        if caller is None and self.above is not None:
            caller = self.above.plan["thinking"]
        output = {
            "argument": self.asked.thinking,
            "agent_subagents": self.rules.own(self.agent).thinking,
            "defaults_subagents": self.rules.defaults.thinking,
            "caller": caller if self.is_same else None,
        }
        levels = {place: _level(word) for place, word in output.items()}
        there = (place for place, word in output.items() if word and word.strip())
        source = next(there, None)
        if source == "caller" and levels["caller"] is None:
            source = None
        self.looked_at["thinking"] = {**levels, "taken_from": source}
        if source is None:
            return None, None
        word = output[source]
        if word in words.NO_THINKING:
            return Told("thinking", "error", words.no_level(words.NO_THINKING[word]))
        return levels[source], source

    def _folder(self) -> Told | None:
        home, places = f"{self.model.home}/", self.model.places
        own = self.rules.workspace(self.agent)
        recorded = self.above.plan["workspace_dir"] if self.above and self.is_same else None
        named = self.asked.folder if self.is_same else None
        within = None if recorded is None else recorded.removeprefix(home)
        if named is not None:
            found: Folder = places.named(named, within, [own, *self.rules.roots])
        elif within is not None:
            found = places.recorded(within)
        else:
            found = places.own(self.agent, own)
        source = "agent" if named is None and recorded is None else "requester"
        folder, text = found
        path = None if folder is None else home + folder
        self.looked_at["workspace"] = {"source": source, "recorded": recorded, "chosen": path}
        return Told("workspace", "error", text) if text is not None else None

    def _will(self, model: Choice, level: tuple[str | None, str | None]) -> Will:
        rules, request = self.rules, self.asked
        seconds, warning = _seconds(request, rules)
        tools = plan_words.TOOLS[rules.tools]
        is_leaf = may(self.depth, rules.depth)[0] == "leaf"
        has_price = rules.prices and model.name == plan_words.PRICED
        prices = plan_words.PRICES if has_price else (None, None)
        is_dropped = request.folder is not None and not self.is_same
        plan = {
            "model_provider": model.provider,
            "model": model.model,
            "model_source": model.source,
            "model_applied": model.is_first,
            "thinking": level[0],
            "thinking_source": level[1],
            "run_timeout_seconds": seconds,
            "run_timeout_source": "defaults" if request.seconds is None else "argument",
            "workspace_dir": self.looked_at["workspace"]["chosen"],
            "workspace_source": self.looked_at["workspace"]["source"],
            "sandboxed": rules.mode(self.agent) != "off",
            "tools_allow": tools.allow,
            "tools_deny": tools.leaf if is_leaf else tools.orchestrator,
            "runtime": self.looked_at["runtime"],
            "auth_profiles": (),
            "archive_after_minutes": rules.minutes,
            "idle_hours": None,
            "max_age_hours": None,
            "cost_input_usd_per_million": prices[0],
            "cost_output_usd_per_million": prices[1],
        }
        dropped = (plan_words.not_used(self.agent),) if is_dropped else ()
        return Will(plan, (*model.warnings, *warning, *dropped))


def _level(word: str | None) -> str | None:
    """Return the thinking level for a word. Levels themselves are words, and are recorded."""
    if word is None:
        return None
    return words.THINKING.get(word) or (word if word in words.THINKING.values() else None)


def _seconds(request: Asked, rules: Rules) -> tuple[int, tuple[str, ...]]:
    given = rules.seconds if request.seconds is None else request.seconds
    if given >= plan_words.SECONDS_MAX + 1:
        return plan_words.SECONDS_MAX, (plan_words.TOO_LONG,)
    if given < 0 or 0 < given < 1:
        return 0, (plan_words.no_limit(given),)
    return (0 if given < 0 else math.floor(given)), ()

"""Decisions that are the same under two configurations without a look at their further events.

All that they go by is equal, or all but admission, which is judged again from their requests.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Literal

from domain.configuration.configuration import Configuration, EffectiveAgent, EffectiveSubagents
from domain.run.events import MessageReceived, SpawnRequested
from domain.spawn.admission import ADMISSION, CONTINUATION, admit
from domain.values.json_text import compact_json
from domain.values.refusals import Permitted, Refusal
from domain.values.session_key import agent_id_of
from domain.what_if.decide_again import WholeConfiguration, facts_under
from domain.what_if.scripts import are_scripts_unchanged

AGENTS_REMEMBERED_MAX = 10_000
_UNREAD = "?"
_Level = Literal[0, 1, 2]
"""What differs for an agent: nothing, admission alone, or more."""


class UnaffectedAgents:
    """Compares two configurations, section by section and agent by agent, each once.

    `announcing` are all configurations that runs may have been announced under.
    """

    def __init__(
        self,
        then: WholeConfiguration,
        now: WholeConfiguration,
        announcing: Sequence[Configuration],
    ) -> None:
        self._then = then
        self._now = now
        self._levels: dict[str, _Level] = {}
        announce = now.configuration.spawnlog.announce
        self._is_shared_equal = _shared(then.configuration) == _shared(now.configuration) and all(
            one.spawnlog.announce == announce for one in announcing
        )

    def is_unaffected(self, request: SpawnRequested | MessageReceived) -> bool:
        """Return True if nothing that this was decided by would be otherwise.

        A task of a batch is refused with the others, so it is unaffected only if all of them are.
        """
        if not self._is_shared_equal:
            return False
        level = self._level_of(request)
        return level == 0 or (level == 1 and self._is_admitted_alike(request))

    def _level_of(self, request: SpawnRequested | MessageReceived) -> _Level:
        requester = request.requester
        agent_ids = {requester.agent_id, agent_id_of(requester.session_key)}
        level: _Level = 0
        if isinstance(request, MessageReceived):
            agent_ids.add(request.agent_id)
        else:
            agent_ids.add(request.facts.requester_agent_id)
            if request.requested_agent_id is not None:
                agent_ids.add(request.requested_agent_id)
                level = self._level_of_scripts(request.requested_agent_id)
        return max(level, *map(self._level_of_agent, agent_ids))

    def _level_of_scripts(self, requested: str) -> _Level:
        then, now = self._then.scripts(requested), self._now.scripts(requested)
        if not then.listed and not now.listed:
            return 0
        # A script may name any agent.
        return self._level_of_all if are_scripts_unchanged(then, now) else 2

    @cached_property
    def _level_of_all(self) -> _Level:
        then, now = (set(one.configuration.agent_ids()) for one in (self._then, self._now))
        return max(map(self._level_of_agent, now)) if then == now else 2

    def _level_of_agent(self, agent_id: str) -> _Level:
        known = self._levels.get(agent_id)
        if known is not None:
            return known
        configurations = self._then.configuration, self._now.configuration
        then, now = (one.effective_agent(agent_id) for one in configurations)
        level: _Level = 0
        if then != now:
            level = 1 if _but_admission(then) == _but_admission(now) else 2
        if len(self._levels) < AGENTS_REMEMBERED_MAX:
            self._levels[agent_id] = level
        return level

    def _is_admitted_alike(self, request: SpawnRequested | MessageReceived) -> bool:
        """Whether it is admitted as it was, or refused by the same rule."""
        configuration = self._now.configuration
        if isinstance(request, MessageReceived):
            children = configuration.subagent_defaults.max_children_per_agent
            before, after = request.facts, request.facts.changed({"max_children": children})
            return _rule(admit(CONTINUATION, before)) == _rule(admit(CONTINUATION, after))
        facts, now = request.facts, facts_under(configuration, request.facts)
        return _rule(admit(ADMISSION, facts, raw_agent_id=_UNREAD)) == _rule(
            admit(ADMISSION, now, raw_agent_id=_UNREAD)
        )


def _rule(decision: Permitted | Refusal) -> str | None:
    return decision.rule if isinstance(decision, Refusal) else None


def _but_admission(agent: EffectiveAgent) -> EffectiveAgent:
    """With the same word on whose children are admitted, however many."""
    admits_all = {"allow_agents": None, "require_agent_id": False, "max_children_per_agent": 1}
    return replace(
        agent,
        subagents=EffectiveSubagents(
            allow_agents=None,
            require_agent_id=False,
            context_preamble_max_chars=agent.subagents.context_preamble_max_chars,
        ),
        defaults=agent.defaults.model_copy(update=admits_all),
    )


def _shared(configuration: Configuration) -> tuple[object, ...]:
    """What is the same for all agents, and is looked at by a decision."""
    settings = configuration.spawnlog
    return (
        configuration.session,
        configuration.tools,
        configuration.default_agent_id,
        # As they are read: 1 is not true there, and of two keys in another case the first counts.
        compact_json(configuration.extra),
        settings.hooks,
        settings.announce,
        settings.workspace_roots,
    )

"""Which decisions are the same under two configurations without a look at what came of them: all
that they go by is equal, or all but what admits, and that is judged again from their own facts."""

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
from domain.what_if.decide_again import WholeConfiguration, facts_under, found_by
from domain.what_if.scripts import are_scripts_unchanged

AGENTS_REMEMBERED_MAX = 10_000
_UNREAD = "?"
AgentsDifference = Literal["nothing", "admission", "more"]
"""What differs for those who ask for an agent."""
_Key = tuple[bool, str, str, str, str | None, str | None]


class UnaffectedAgents:
    """What is equal in two configurations, section by section and agent by agent; each is compared
    once. `announcing` are all that runs may have been announced under."""

    def __init__(
        self,
        then: WholeConfiguration,
        now: WholeConfiguration,
        announcing: Sequence[Configuration],
    ) -> None:
        self._then = then
        self._now = now
        self._differences: dict[_Key, AgentsDifference] = {}
        announce = now.configuration.spawnlog.announce
        self._is_shared_equal = _shared(then.configuration) == _shared(now.configuration) and all(
            one.spawnlog.announce == announce for one in announcing
        )

    def has_scripts(self, request: SpawnRequested | MessageReceived) -> bool:
        """Whether scripts ran for it, or would run now: one of them may have named the agent."""
        if not isinstance(request, SpawnRequested) or request.requested_agent_id is None:
            return False
        asked = request.requested_agent_id
        return any(one.scripts(asked).listed for one in (self._then, self._now))

    def is_unaffected(
        self, request: SpawnRequested | MessageReceived, overridden_to: str | None
    ) -> bool:
        """Whether nothing that this was decided by would be otherwise. `overridden_to` is the agent
        that a script put in the place of the requested one. What is true of one task of a batch
        alone says nothing: it is refused with the others."""
        if not self._is_shared_equal:
            return False
        difference = self._difference(request, overridden_to)
        if difference == "admission":
            return self._is_admitted_alike(request)
        return difference == "nothing"

    def _difference(
        self, request: SpawnRequested | MessageReceived, overridden_to: str | None
    ) -> AgentsDifference:
        requester = request.requester
        if isinstance(request, SpawnRequested):
            asks, requested = request.facts.requester_agent_id, request.requested_agent_id
        else:
            asks, requested = requester.agent_id, request.agent_id
        of_key = agent_id_of(requester.session_key)
        # The scripts of an agent run for a spawn, and not for a message.
        is_spawn = isinstance(request, SpawnRequested)
        key = (is_spawn, asks, requester.agent_id, of_key, requested, overridden_to)
        known = self._differences.get(key)
        if known is None:
            known = self._compared(request, {asks, requester.agent_id, of_key}, overridden_to)
            if len(self._differences) < AGENTS_REMEMBERED_MAX:
                self._differences[key] = known
        return known

    def _compared(
        self,
        request: SpawnRequested | MessageReceived,
        asking: set[str],
        overridden_to: str | None,
    ) -> AgentsDifference:
        then, now = self._then.configuration, self._now.configuration
        agent_ids = set(asking)
        if isinstance(request, MessageReceived):
            agent_ids.add(request.agent_id)
        elif request.requested_agent_id is not None:
            agent_ids |= {request.requested_agent_id, overridden_to or request.requested_agent_id}
            if self.has_scripts(request) and not self._are_scripts_equal(
                request.requested_agent_id
            ):
                return "more"
        pairs = [(then.effective_agent(one), now.effective_agent(one)) for one in agent_ids]
        if all(one == other for one, other in pairs):
            return "nothing"
        if all(_but_admission(one) == _but_admission(other) for one, other in pairs):
            return "admission"
        return "more"

    def _are_scripts_equal(self, requested: str) -> bool:
        then, now = self._then.scripts(requested), self._now.scripts(requested)
        # Which agents there are decides whom a script may name, and who of them has credentials.
        return (
            are_scripts_unchanged(then, now)
            and set(then.agent_ids) == set(now.agent_ids)
            and self._are_credentials_found_alike
        )

    @cached_property
    def _are_credentials_found_alike(self) -> bool:
        """Those of all agents: one without may have been passed over."""
        then, now = self._then.configuration, self._now.configuration
        return all(
            found_by(then.effective_agent(one)) == found_by(now.effective_agent(one))
            for one in now.agent_ids()
        )

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

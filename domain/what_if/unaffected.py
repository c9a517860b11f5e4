"""Two configurations that differ in the limits of admission alone.

A decision under them is the same if its request is admitted alike: nothing else of it is looked at.
"""

from collections.abc import Sequence
from dataclasses import replace

from domain.configuration.configuration import Configuration, EffectiveAgent, EffectiveSubagents
from domain.run.events import MessageReceived, SpawnRequested
from domain.spawn.admission import ADMISSION, CONTINUATION, admit
from domain.values.json_text import compact_json
from domain.values.refusals import Permitted, Refusal
from domain.what_if.decide_again import WholeConfiguration, facts_under
from domain.what_if.scripts import are_scripts_unchanged

_UNREAD = "?"


def differ_in_limits_alone(
    then: WholeConfiguration, now: WholeConfiguration, announcing: Sequence[Configuration]
) -> bool:
    """Return True if nothing differs but limits of admission.

    `announcing` are all configurations that runs may have been announced under.
    """
    before, after = then.configuration, now.configuration
    # An agent that is in no list has the defaults.
    agent_ids = (*after.agent_ids(), _UNREAD)
    return (
        before.agent_ids() == after.agent_ids()
        and _shared(before) == _shared(after)
        and all(one.spawnlog.announce == after.spawnlog.announce for one in announcing)
        and all(
            _but_admission(before.effective_agent(one))
            == _but_admission(after.effective_agent(one))
            and are_scripts_unchanged(then.scripts(one), now.scripts(one))
            for one in agent_ids
        )
    )


def is_admitted_alike(now: Configuration, request: SpawnRequested | MessageReceived) -> bool:
    """Return True if a request is admitted as it was, or refused by the same rule.

    A task of a batch is the same only if all of its batch are.
    """
    if isinstance(request, MessageReceived):
        children = now.subagent_defaults.max_children_per_agent
        facts = request.facts.changed({"max_children": children})
        return _rule(admit(CONTINUATION, request.facts)) == _rule(admit(CONTINUATION, facts))
    under = request.facts, facts_under(now, request.facts)
    before, after = (_rule(admit(ADMISSION, one, raw_agent_id=_UNREAD)) for one in under)
    return before == after


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

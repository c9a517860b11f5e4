"""Fast path of a what-if: if only admission limits differ, compare only the admission verdicts.

A decision under such configurations is the same if its request is admitted alike; nothing else has
to be checked.
"""

from collections.abc import Sequence

from domain.configuration.configuration import Configuration
from domain.run.events import MessageReceived, SpawnRequested
from domain.spawn.admission import ADMISSION, CONTINUATION, admit
from domain.values.json_text import compact_json
from domain.values.refusals import Permitted, Refusal
from domain.what_if.change import Change

_UNREAD = "?"
_UNLISTED = "?"
"""Placeholder for any unlisted agent, which has the scripts of the defaults."""


def differ_in_limits_alone(change: Change, announcing: Sequence[Configuration]) -> bool:
    """Return True if the configurations differ only in admission limits.

    Args:
        change: The two configurations.
        announcing: All configurations that runs may have been announced under.
    """
    before, after = change.both
    return (
        _without_limits(before) == _without_limits(after)
        # Equal values may have different JSON texts: 1 and true, or keys in another order.
        and compact_json(before.extra) == compact_json(after.extra)
        and all(
            configuration.spawnlog.announce == after.spawnlog.announce
            for configuration in announcing
        )
        and all(
            change.agent(agent_id).scripts.is_nothing
            for agent_id in (*after.agent_ids(), _UNLISTED)
        )
    )


def _without_limits(configuration: Configuration) -> Configuration:
    limits = {"allow_agents": None, "require_agent_id": False}
    agents, defaults = configuration.agents, configuration.agents.defaults
    subagents = configuration.subagent_defaults.model_copy(
        update={**limits, "max_children_per_agent": 1}
    )
    changes = {
        "defaults": defaults.model_copy(update={"subagents": subagents}),
        "list": tuple(
            agent.model_copy(update={"subagents": agent.subagents.model_copy(update=limits)})
            for agent in agents.roster
        ),
        "entries": None,
    }
    return configuration.model_copy(update={"agents": agents.model_copy(update=changes)})


def is_admitted_alike(change: Change, request: SpawnRequested | MessageReceived) -> bool:
    """Return True if the request is admitted as recorded, or refused by the same rule.

    In a batch this says nothing unless it is True for all of its tasks.
    """
    if isinstance(request, MessageReceived):
        children = change.now.configuration.subagent_defaults.max_children_per_agent
        facts = request.facts.changed({"max_children": children})
        return _rule(admit(CONTINUATION, request.facts)) == _rule(admit(CONTINUATION, facts))
    limits = change.agent(request.facts.requester_agent_id).limits
    under = request.facts, request.facts.changed({**limits})
    before, after = (_rule(admit(ADMISSION, facts, raw_agent_id=_UNREAD)) for facts in under)
    return before == after


def _rule(decision: Permitted | Refusal) -> str | None:
    return decision.rule if isinstance(decision, Refusal) else None

"""Two configurations that differ in the limits of admission alone.

A decision under them is the same if its request is admitted alike: nothing else of it is looked at.
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
"""An agent that is not listed has the scripts of the defaults."""


def differ_in_limits_alone(change: Change, announcing: Sequence[Configuration]) -> bool:
    """Return True if nothing differs but limits of admission.

    `announcing` are all configurations that runs may have been announced under.
    """
    before, after = change.both
    return (
        _without_limits(before) == _without_limits(after)
        # Values that are equal may be printed differently: 1 for true, and keys in another order.
        and compact_json(before.extra) == compact_json(after.extra)
        and all(one.spawnlog.announce == after.spawnlog.announce for one in announcing)
        and all(change.agent(one).scripts.is_nothing for one in (*after.agent_ids(), _UNLISTED))
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
            one.model_copy(update={"subagents": one.subagents.model_copy(update=limits)})
            for one in agents.roster
        ),
        "entries": None,
    }
    return configuration.model_copy(update={"agents": agents.model_copy(update=changes)})


def is_admitted_alike(change: Change, request: SpawnRequested | MessageReceived) -> bool:
    """Return True if a request is admitted as it was, or refused by the same rule.

    A task of a batch is the same only if all of its batch are.
    """
    if isinstance(request, MessageReceived):
        children = change.now.configuration.subagent_defaults.max_children_per_agent
        facts = request.facts.changed({"max_children": children})
        return _rule(admit(CONTINUATION, request.facts)) == _rule(admit(CONTINUATION, facts))
    limits = change.agent(request.facts.requester_agent_id).limits
    under = request.facts, request.facts.changed({**limits})
    before, after = (_rule(admit(ADMISSION, one, raw_agent_id=_UNREAD)) for one in under)
    return before == after


def _rule(decision: Permitted | Refusal) -> str | None:
    return decision.rule if isinstance(decision, Refusal) else None

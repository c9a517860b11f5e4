"""The stages in which a spawn, or a message, is decided: their order, and the rules of each.

This is the one list. A server and a what-if go through it to decide, explanations to tell what was
compared; the documentation, the description of the API and filters take the names of rules from it.
What a stage judges stands in its table: a new rule is a row there.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from domain.plan.child import RefusedChild
from domain.plan.eligibility import CONTINUED_ELIGIBILITY, ELIGIBILITY
from domain.spawn.admission import ADMISSION, CONTINUATION
from domain.spawn.dependency_rules import NAMES, WAITS
from domain.spawn.pipeline import (
    ChildFacts,
    Decided,
    Need,
    choose_agent,
    frame_message,
    frame_spawn,
    place_steps,
    settle_message,
    settle_spawn,
    take_steps,
)
from domain.values import rules
from domain.values.rules import Rule

StageName = Literal[
    "admission", "batch", "dependencies", "scripts", "override", "plan", "steps", "outcome", "other"
]


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage, and its rules in the order in which they are judged, choices among them.

    Attributes:
        name: Its name.
        rules: Rules that refuse, and choices, which have no status and refuse nothing.
        decides: What is decided of each child, in this order. A stage without any is judged for all
            that one request asks for, under the lock of the log.
    """

    name: StageName
    rules: tuple[Rule, ...]
    decides: tuple[Callable[[ChildFacts], Decided], ...] = ()


SPAWN_STAGES = (
    # What a family shares is in no fact of a request, and is judged for a patch and at the start of
    # a run too, so that rule is no row of the table.
    Stage("admission", (*(one.rule for one in ADMISSION), rules.SHARED_CONTEXT)),
    Stage("batch", ()),
    Stage(
        "dependencies",
        (rules.WAITS_FOR, *(one.rule for one in NAMES), *(one.rule for one in WAITS)),
    ),
    Stage("scripts", (rules.CONTEXT_SCRIPTS,)),
    Stage("override", (rules.OVERRIDE,), (choose_agent,)),
    Stage("plan", tuple(one.rule for one in ELIGIBILITY), (frame_spawn, settle_spawn)),
    # Steps are no table that is judged: a step refuses because of what came of an effect outside,
    # at whichever moment that was.
    Stage("steps", rules.STEPS, (place_steps, take_steps)),
    Stage("outcome", (rules.TOOLS, rules.CAPABILITIES, rules.PREAMBLE)),
    # Each of these is the act of somebody else, at any time, and nothing is compared.
    Stage("other", (rules.STOPPED, rules.ERASED, rules.BATCH)),
)
MESSAGE_STAGES = (
    Stage("admission", tuple(one.rule for one in CONTINUATION)),
    Stage(
        "plan",
        tuple(one.rule for one in CONTINUED_ELIGIBILITY),
        (frame_message, settle_message),
    ),
    Stage("outcome", (rules.TOOLS, rules.CAPABILITIES)),
)


def decide_child(
    stages: Iterable[Stage], facts: ChildFacts
) -> tuple[ChildFacts, RefusedChild | Need | None]:
    """Go through the stages with what is known of a child.

    Returns:
        What is known then, and the first refusal or need; None if all was decided.
    """
    for stage in stages:
        for decide in stage.decides:
            found = decide(facts)
            if not isinstance(found, ChildFacts):
                return facts, found
            facts = found
    return facts, None


def names_of(*stages: StageName) -> frozenset[str]:
    """Return the names of the rules that refuse a spawn in these stages."""
    return frozenset(one.name for one in _refusing(stages))


def _refusing(stages: Iterable[StageName]) -> Iterable[Rule]:
    taken = [one for one in SPAWN_STAGES if one.name in stages]
    return (rule for stage in taken for rule in stage.rules if rule.statuses)


RULES = tuple(_refusing([one.name for one in SPAWN_STAGES]))
RULE_NAMES = tuple(one.name for one in RULES)
CHOICES = tuple(one for stage in SPAWN_STAGES for one in stage.rules if not one.statuses)
